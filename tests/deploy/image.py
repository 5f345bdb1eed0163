"""Does the work of a Dockerfile without Docker: each stage has a root folder made by debootstrap. Needs root and Debian's mirror.

The script knows the instructions in Yoke's Dockerfile: ARG, FROM, COPY, RUN, ENV, USER, WORKDIR, CMD. RUN lines run unchanged, in
/bin/sh of the stage.
"""
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys

CERTIFICATES = "/etc/ssl/certs/ca-certificates.crt"  # from this machine; a network may need special certificates


def instructions(path):
    """Returns (word, rest) of each; lines that go on are joined, comments left out."""
    text = re.sub(r"\\\n", " ", re.sub(r"^#.*\n", "", pathlib.Path(path).read_text(), flags=re.M))
    return [tuple(line.split(None, 1)) for line in text.splitlines() if line.strip()]


class Stage:
    def __init__(self, base, root):
        self.root, self.user, self.folder, self.command = pathlib.Path(root), "0", "/", []
        self.variables = {"PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"}
        subprocess.run(["cp", "-a", str(base), str(root)], check=True)
        shutil.copy("/etc/resolv.conf", self.root / "etc/resolv.conf")
        shutil.copy(CERTIFICATES, self.root / "host-certificates.crt")

    def run(self, command, **options):
        """Runs a command in new namespaces. Its mounts end with the command."""
        passed = {name: value for name, value in os.environ.items() if name.lower() in ("http_proxy", "https_proxy", "no_proxy")}
        passed |= {"PIP_CERT": "/host-certificates.crt", "SSL_CERT_FILE": "/host-certificates.crt"}
        script = 'mount -t proc proc "$0/proc" && mount --rbind /dev "$0/dev" && exec chroot --userspec="$1" "$0" /bin/sh -c "cd $2 && $3"'
        return subprocess.run(["unshare", "--mount", "--pid", "--fork", "sh", "-c", script, str(self.root), self.user, self.folder, command],
                              env=passed | self.variables | {"HOME": "/root" if self.user == "0" else "/home/yoke", "DEBIAN_FRONTEND": "noninteractive"}, **options)

    def take(self, source, to):
        to = self.root / to.lstrip("/")
        subprocess.run(["cp", "-a", "-T", str(source), str(to)], check=True)


def context(tree, folder):
    """Copies the files that Docker would get from a clone: all files that git does not ignore."""
    listed = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=tree, check=True, capture_output=True).stdout
    subprocess.run(["cpio", "-0", "-pdm", "--quiet", str(folder)], cwd=tree, input=listed, check=True)
    return pathlib.Path(folder)


def build(dockerfile, tree, work):
    """Returns the last stage of a Dockerfile."""
    work = pathlib.Path(work)
    base = work / "base"
    if not base.exists():
        subprocess.run(["debootstrap", "--variant=minbase", "bookworm", str(base)], check=True, stdout=subprocess.DEVNULL)
    files, stages, stage, arguments = context(tree, work / "context"), {}, None, {}
    for word, rest in instructions(dockerfile):
        print(word, rest, flush=True)
        if word == "FROM":
            image, *name = rest.split(" AS ")
            assert image == "debian:bookworm-slim" or image in stages, image
            below = stages[image].root if image in stages else base
            stage = stages[name[0] if name else ""] = Stage(below, work / f"stage-{len(stages)}")
        elif word == "ARG":  # with the default; an ARG before the first FROM serves as default for later ARGs
            name, _, value = rest.partition("=")
            into = arguments if stage is None else stage.variables
            into[name] = value or arguments.get(name, "")
        elif word == "RUN":
            stage.run(rest, check=True)
        elif word == "COPY":
            *options, source, to = rest.split()
            origin = stages[options[0].removeprefix("--from=")].root if options else files
            stage.take(origin / source.lstrip("/"), to)
        elif word == "ENV":
            name, value = rest.split("=", 1)
            stage.variables[name] = value.replace(f"${name}", stage.variables.get(name, ""))
        elif word == "USER":
            stage.user = f"{rest}:{rest}"
        elif word == "WORKDIR":
            stage.folder = rest
        elif word == "CMD":
            stage.command = json.loads(rest)
        else:
            sys.exit(f"{dockerfile}: {word} is not known here")
    return stage
