cp "$SETUPS/train.py" .
