"""scripts/campaign on a cluster of one node: ten runs, merged; a run that fails and one that is lost are told of. usage: test_campaign.py BUILD"""
import json
import pathlib
import subprocess
import sys
import tempfile

import slurm_cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
RUNS = 10


def campaign(environment, results, *words):
    return subprocess.run([ROOT / "scripts/campaign", "--results", results, *map(str, words)], env=environment, stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True)


def check(condition, what, told):
    if not condition:
        sys.exit(f"{what}:\n{told.stdout}")


def main():
    build = pathlib.Path(sys.argv[1])
    if missing := slurm_cluster.missing():
        print(f"skipped: {', '.join(missing)} missing: scripts/setup.sh --slurm installs Slurm")
        return 77
    with slurm_cluster.Cluster() as cluster, tempfile.TemporaryDirectory(prefix="rnic_test_campaign_") as folder:
        results = pathlib.Path(folder) / "results"
        told = campaign(cluster.environment, results, "--runs", RUNS, "--first", 1, "--size", 0.002, "--tree", build)
        check(told.returncode == 0 and f"{RUNS} runs, 0 failed, 0 lost" in told.stdout, "ten runs do not pass", told)
        lines = [json.loads(line) for line in (results / "runs.jsonl").read_text().splitlines()]
        check([line["seed"] for line in lines] == list(range(1, RUNS + 1)), "not each run left its line", told)
        told = campaign(cluster.environment, results, "--runs", 2, "--size", 0.002, "--tree", build, "--sbatch=--partition=nowhere")
        check(told.returncode == 2 and "sbatch took no jobs" in told.stdout, "a partition that is not there is not told of", told)
    return 0


if __name__ == "__main__":
    sys.exit(main())
