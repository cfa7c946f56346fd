"""The installed packages: who owns a file, who depends on whom, what every Debian has."""
import functools
import os
import re
import subprocess

FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"]
# These may come from elsewhere than Debian (tools/setup.sh takes any node that is new enough), so the list is asked for Debian's name.
OFTEN_FOREIGN = {"node": "nodejs", "npm": "npm", "npx": "npm", "python3": "python3"}


def command_path(name):
    """Where a package would put it: what a user installed in front of it does not count."""
    return next((f"{folder}/{name}" for folder in FOLDERS if os.access(f"{folder}/{name}", os.X_OK)), None)


def aliases(path):
    """The names under which a package may have brought this file: links followed, with and without the merge of / into /usr."""
    seen = []
    while path and path not in seen:
        seen.append(path)
        path = os.path.normpath(os.path.join(os.path.dirname(path), os.readlink(path))) if os.path.islink(path) else None
    if os.path.exists(seen[0]):
        seen.append(os.path.realpath(seen[0]))
    out = []
    for name in seen:
        out += [name, name.removeprefix("/usr") if name.startswith("/usr/") else "/usr" + name]
    return out


class System:
    def __init__(self):
        fields = "${Package}\t${Essential}\t${Priority}\t${Provides}\t${Pre-Depends}, ${Depends}\t${db:Status-Status}\n"
        text = subprocess.run(["dpkg-query", "-W", "-f", fields], capture_output=True, text=True, check=True).stdout
        self.depends, self.base, self.providers = {}, set(), {}
        for line in text.splitlines():
            name, essential, priority, provides, depends, status = line.split("\t")
            if status != "installed":
                continue
            self.depends.setdefault(name, []).extend(clause for clause in depends.split(",") if clause.strip())
            # apt is required or important, depending on how the system was made.
            if essential == "yes" or priority == "required" or name == "apt":
                self.base.add(name)
            for provided in [name, *re.findall(r"([\w.+-]+)(?: \([^)]*\))?", provides)]:
                self.providers.setdefault(provided, []).append(name)

    def is_base(self, package):
        return package in self.base

    def closure(self, names):
        """The packages and everything that they depend on; of alternatives the first that is installed."""
        return self._closure(frozenset(names))

    @functools.cache
    def _closure(self, names):
        done, todo = set(), list(names)
        while todo:
            name = todo.pop()
            if name in done:
                continue
            done.add(name)
            for clause in self.depends.get(name, []):
                for alternative in clause.split("|"):
                    providers = self.providers.get(re.match(r"\s*([\w.+-]+)", alternative).group(1))
                    if providers:
                        todo += providers[:1]
                        break
        return done

    def owners(self, needs):
        """need -> package, for those that a package owns. A command that is not installed is taken to be in the package of its own name."""
        names = {}
        for need in needs:
            path = need.what if need.what.startswith("/") else command_path(need.what)
            names[need] = aliases(path) if path else []
        by_file = self._search(sorted({alias for found in names.values() for alias in found}))
        owners = {}
        for need, found in names.items():
            absent = None if found else need.what
            owner = OFTEN_FOREIGN.get(os.path.basename(need.what)) or absent or next((by_file[alias] for alias in found if alias in by_file), None)
            if owner:
                owners[need] = owner
        return owners

    @staticmethod
    def _search(paths):
        """dpkg -S for all of them. Its exit code only says that some are nobody's."""
        if not paths:
            return {}
        text = subprocess.run(["dpkg", "-S", *paths], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"}).stdout
        found = {}
        for line in text.splitlines():
            if line.startswith("diversion "):
                continue
            packages, _, path = line.partition(": ")
            found[path] = packages.split(",")[0].partition(":")[0]
        return found
