# Runs a test and says at the end which processor time it and its children took: summary.py reads the last line.
"$@"
status=$?
echo "processor time of this shell, and of the test:"
times
exit $status
