# Runs a test and prints at the end the processor time of the test and its children; summary.py reads the last line.
"$@"
status=$?
echo "processor time of this shell, and of the test:"
times
exit $status
