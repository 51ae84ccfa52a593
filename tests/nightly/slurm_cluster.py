"""A cluster of Slurm with one node, this machine, for as long as a with statement lasts."""
import os
import pathlib
import pwd
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1] / "support"))
import tcp_ports  # noqa: E402

PATIENCE = 60  # seconds

CONFIGURATION = """ClusterName=one
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={controller}
SlurmdPort={node}
SlurmUser={user}
SlurmdUser={user}
AuthType=auth/none
CredType=cred/none
CryptoType=crypto/none
SlurmctldPidFile={folder}/slurmctld.pid
SlurmdPidFile={folder}/slurmd.pid
SlurmctldLogFile={folder}/slurmctld.log
SlurmdLogFile={folder}/slurmd.log
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
MpiDefault=none
SelectType=select/linear
ReturnToService=2
NodeName=localhost NodeAddr=127.0.0.1 NodeHostname={host} CPUs={cpus} State=UNKNOWN
PartitionName=all Nodes=localhost Default=YES OverSubscribe=FORCE:{cpus} MaxTime=INFINITE State=UP
"""


def missing():
    """Programs of Slurm (package slurm-wlm) that are not there."""
    return [name for name in ("slurmctld", "slurmd", "sbatch", "sinfo") if program(name) is None]


def program(name):
    return shutil.which(name, path=os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"]))


class Cluster:
    """`environment` is what its commands need. Raises RuntimeError when it does not come up."""

    def __enter__(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="rnic_slurm_"))
        self.processes = []
        try:
            self.begin()
        except BaseException:
            self.__exit__()
            raise
        return self

    def begin(self):
        controller, node = tcp_ports.free_port(), tcp_ports.free_port()
        for name in ("state", "spool"):
            (self.folder / name).mkdir()
        file = self.folder / "slurm.conf"
        file.write_text(CONFIGURATION.format(controller=controller, node=node, user=pwd.getpwuid(os.geteuid()).pw_name, folder=self.folder,
                                             host=socket.gethostname().split(".")[0], cpus=os.cpu_count()))
        self.environment = {**os.environ, "SLURM_CONF": str(file)}
        for command in (["slurmctld", "-D"], ["slurmd", "-D", "-N", "localhost"]):
            self.processes.append(subprocess.Popen([program(command[0]), *command[1:]], env=self.environment, stdout=subprocess.DEVNULL,
                                                   stderr=subprocess.DEVNULL, start_new_session=True))
        end = time.monotonic() + PATIENCE
        while time.monotonic() < end:
            if any(process.poll() is not None for process in self.processes):
                break
            told = subprocess.run([program("sinfo"), "-h", "-o", "%T"], env=self.environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            if told.stdout.strip() == "idle":
                return
            time.sleep(0.2)
        raise RuntimeError("the cluster does not come up:\n" + "".join(log.read_text()[-2000:] for log in sorted(self.folder.glob("*.log"))))

    def __exit__(self, *_):
        for process in reversed(self.processes):
            process.terminate()
        for process in self.processes:
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
