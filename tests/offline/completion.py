#!/usr/bin/python3
"""The completions for bash, zsh and fish: they offer what h5fs understands."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest

H5FS = os.path.realpath(os.environ.get("H5FS", "src/h5fs"))
COMPLETION = os.path.realpath(os.path.join(os.path.dirname(__file__), "..", "..", "contrib", "completion"))

# Types the line as readline would break it, and prints what is offered.
BASH = r"""
shopt -s extglob
. "$1"
COMP_LINE=$2 COMP_POINT=${#2}
read -ra words <<<"${2//=/ = }"
[[ $2 != *" " ]] || words+=("")
COMP_WORDS=("${words[@]}") COMP_CWORD=$((${#words[@]} - 1))
_h5fs
printf '%s\n' "${COMPREPLY[@]}"
"""

FISH = r"""
source $argv[1]/h5fs.fish
complete -C $argv[2]
"""

# A terminal of its own, in which the line is typed, then tab; the choices are listed as zsh has them. The terminal has its size before that
# zsh begins: zsh 5.9 may crash if its terminal changes while it edits a line.
ZSH = r"""
zmodload zsh/zpty
zpty shell 'stty cols 200 rows 200; exec zsh -f -i'
zpty -w shell "PS1=REA''DY; fpath=(${(q)1} \$fpath); autoload -Uz compinit; compinit -u -D; zstyle ':completion:*' list-prompt ''; LISTMAX=0; PATH=${(q)3}:\$PATH"
zpty -r shell text '*READY*'
zpty -w -n shell "$2"$'\t'
zpty -w -n shell $'\t'
# All of that has been done when the next line is.
zpty -w shell $'\C-u'"print AND THAT IS A""LL"
zpty -r shell text '*THAT IS ALL*'
print -rn -- "$text"
zpty -d shell
"""


def options():
    usage = subprocess.run([H5FS, "-h"], capture_output=True, text=True, check=True).stdout
    return set(re.findall(r"(?m)^    ([a-z][a-z0-9_-]*=?)", usage))


class Completion(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)
        os.symlink(H5FS, os.path.join(self.folder, "h5fs"))
        self.files = os.path.join(self.folder, "files")
        os.makedirs(os.path.join(self.files, "folder"))
        for name in "a.h5", "b.nc", "c.txt":
            open(os.path.join(self.files, name), "w").close()
        self.env = dict(os.environ, PATH=self.folder + ":" + os.environ["PATH"], TERM="dumb", HOME=self.folder)

    def bash(self, line):
        run = subprocess.run(["bash", "--norc", "-c", BASH, "bash", f"{COMPLETION}/h5fs.bash", line], capture_output=True,
                             text=True, cwd=self.files, env=self.env, check=True)
        self.assertEqual(run.stderr, "")
        return set(run.stdout.split("\n")) - {""}

    def test_bash_files(self):
        self.assertEqual(self.bash("h5fs "), {"a.h5", "b.nc", "folder"})
        self.assertEqual(self.bash("h5fs a"), {"a.h5"})
        self.assertEqual(self.bash("h5fs -u "), {"folder"})

    def test_bash_options(self):
        self.assertEqual(self.bash("h5fs --"), {"--cat", "--check", "--extract", "--help", "--json", "--kerchunk", "--list", "--reclaim", "--recover", "--version"})
        for option in self.bash("h5fs -") - {"-o", "-d", "-f", "-s"}:
            run = subprocess.run([H5FS, option], capture_output=True, text=True, check=False)
            self.assertNotIn("unknown option", run.stderr)

    def test_bash_mount_options(self):
        self.assertEqual(self.bash("h5fs -o "), options())
        self.assertEqual(self.bash("h5fs -o sw"), {"swmr"})
        self.assertEqual(self.bash("h5fs -o rw,sy"), {"rw,sync="})
        self.assertEqual(self.bash("h5fs -o rw,sync="), {"close", "fsync"})
        self.assertEqual(self.bash("h5fs -orw,external=n"), {"none"})
        self.assertEqual(self.bash("h5fs -o journal=f"), {"folder"})
        self.assertEqual(self.bash("h5fs -o log="), {"syslog", "a.h5", "b.nc", "c.txt", "folder"})
        self.assertEqual(self.bash("h5fs -o rw,log=s"), {"syslog"})

    def test_bash_names_with_blanks(self):
        for name in "d e", "d f":
            os.mkdir(os.path.join(self.files, name))
        open(os.path.join(self.files, "d g"), "w").close()
        self.assertEqual(self.bash("h5fs -o journal=d"), {"d e", "d f"})
        self.assertEqual(self.bash("h5fs -o rw,log=d"), {"d e", "d f", "d g"})
        self.assertEqual(self.bash(r"h5fs -o rw,journal=d\ e"), {"d e"})

    def test_values_are_understood(self):
        for name in options():
            for value in self.bash(f"h5fs -o {name}") if name.endswith("=") else ():
                if name in ("disk_cache=", "journal=", "log=") or name + value == "io_uring=yes":  # files; not everywhere possible
                    continue
                run = subprocess.run([H5FS, "-o", name + value, "/absent.h5", "/absent"], capture_output=True, text=True)
                self.assertNotIn("must be", run.stderr)
                self.assertNotEqual(run.returncode, 2, name + value)

    def fish(self, line):
        run = subprocess.run(["fish", "--no-config", "-c", FISH, COMPLETION, line], capture_output=True, text=True, cwd=self.files,
                             env=self.env, check=True)
        self.assertEqual(run.stderr, "")
        return {choice.partition("\t")[0] for choice in run.stdout.split("\n")} - {""}

    def test_fish(self):
        self.assertEqual(self.fish("h5fs "), {"a.h5", "b.nc", "folder/"})
        self.assertEqual(self.fish("h5fs a"), {"a.h5"})
        self.assertEqual(self.fish("h5fs -u "), {"folder/"})
        self.assertEqual(self.fish("h5fs --"), self.bash("h5fs --"))
        self.assertEqual(self.fish("h5fs -o "), options())
        self.assertEqual(self.fish("h5fs -o rw,sy"), {"rw,sync="})
        self.assertEqual(self.fish("h5fs -orw,external=n"), {"-orw,external=none"})
        self.assertEqual(self.fish("h5fs -o journal=f"), {"journal=folder/"})
        self.assertEqual(self.fish("h5fs -o rw,log=s"), {"rw,log=syslog"})
        for name in options():
            if name.endswith("=") and name not in ("disk_cache=", "journal=", "log="):
                self.assertEqual(self.fish(f"h5fs -o {name}"), {name + value for value in self.bash(f"h5fs -o {name}")})

    def zsh(self, line):
        run = subprocess.run(["zsh", "-f", "-c", ZSH, "zsh", COMPLETION, line, self.folder], capture_output=True, text=True,
                             cwd=self.files, env=self.env, timeout=60)
        return run.stdout

    def test_zsh(self):
        text = self.zsh("h5fs -o ")
        for name in options():
            self.assertRegex(text, rf"\b{name.rstrip('=')}\b")
        self.assertIn("close", self.zsh("h5fs -o sync="))
        text = self.zsh("h5fs ")
        self.assertIn("a.h5", text)
        self.assertNotIn("c.txt", text)
        self.assertIn("--check", self.zsh("h5fs --"))


if __name__ == "__main__":
    unittest.main()
