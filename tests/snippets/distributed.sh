cp "$SETUPS/train.py" .
mkdir folder
python -c 'import yoke; group, = yoke.comm.init_all(["cpu"]); group.barrier(); group.dump("folder/rank-0.json")'
yoke() { command yoke "${@/\/folder/folder}"; }
