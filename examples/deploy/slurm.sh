#!/bin/bash
# Starts a job of two nodes with four ranks each. Run sbatch from the root of the tree, with Yoke installed for the
# python3 on PATH:
#
#     sbatch examples/deploy/slurm.sh [--epochs 10 …]
#
# srun gives each rank its number, and Yoke finds rank 0 on the first node of the step. Options of sbatch come before
# the script: `sbatch --nodes 1 --ntasks-per-node 2 …`. With cards add --gpus-per-node 4 or --gpus-per-task 1: each rank
# takes a different card. If a job is ended or requeued, it continues from its last save. The folder of the saves must
# be visible to all nodes.
#SBATCH --job-name=ddp_fashion
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=4
#SBATCH --cpus-per-task=4
#SBATCH --time=01:00:00
#SBATCH --requeue
#SBATCH --output=%x-%j.out
set -euo pipefail
export SRUN_CPUS_PER_TASK=${SLURM_CPUS_PER_TASK:-1} # srun itself does not read SLURM_CPUS_PER_TASK
export YOKE_NUM_THREADS=$SRUN_CPUS_PER_TASK

# If a rank fails, the other ranks end with its reason, and srun ends the step.
srun --kill-on-bad-exit=1 --label python3 "$SLURM_SUBMIT_DIR/examples/ddp_fashion.py" --save "$SLURM_SUBMIT_DIR/ddp_fashion-run" "$@"
