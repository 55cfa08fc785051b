"""What a kubelet and a container runtime make of a pod, for tests/e2e/kubelet and tests/e2e/pod:
its volumes and environment from the API server, and its container as a process in namespaces,
with a root filesystem, mounts and a user of its own. Needs root.

Not there: init containers, more than one container, seccomp, cgroups (limits of cpu and memory
have no effect).
"""
import ctypes
import http.client
import json
import os
import pathlib
import re
import signal
import socket
import ssl

NEW_PID, NEW_NET, NEW_MOUNT, NEW_IPC, NEW_UTS = (
    0x20000000, 0x40000000, 0x00020000, 0x08000000, 0x04000000)
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_REMOUNT, MS_BIND, MS_REC, MS_PRIVATE = (
    1, 2, 4, 32, 4096, 16384, 1 << 18)
PR_SET_PDEATHSIG, PR_CAPBSET_DROP, PR_SET_NO_NEW_PRIVS = 1, 24, 38
libc = ctypes.CDLL(None, use_errno=True)


def call(name, *arguments):
    if getattr(libc, name)(*arguments) < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"{name}: {os.strerror(number)}")


# ---- the container: in a process of its own, before it becomes the program ----


def mount(source, target, kind=None, flags=0, data=None):
    call("mount", *(text and str(text).encode() for text in (source, target, kind)),
         ctypes.c_ulong(flags), data and data.encode())


def bind(source, target, read_only):
    mount(source, target, flags=MS_BIND)
    if read_only:
        mount(None, target, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NOSUID | MS_NODEV)


def make_root(spec):
    """The root as the container sees it. Mount points are made in a copy of the image."""
    root = pathlib.Path(spec["root"])
    mount(None, "/", flags=MS_REC | MS_PRIVATE)
    bind(root, root, False)
    (root / "dev/shm").mkdir(parents=True, exist_ok=True)
    mount("shm", root / "dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "size=64m")
    for source, target, read_only in spec["mounts"]:
        at = root / target.lstrip("/")
        if os.path.isdir(source):
            at.mkdir(parents=True, exist_ok=True)
        else:
            at.parent.mkdir(parents=True, exist_ok=True)
            at.touch()
        bind(source, at, read_only)
    for device in ("null", "zero", "random", "urandom"):
        (root / "dev" / device).touch()
        mount(f"/dev/{device}", root / "dev" / device, flags=MS_BIND)
    mount("proc", root / "proc", "proc", MS_NOSUID | MS_NODEV)
    if spec["readOnly"]:
        mount(None, root, flags=MS_BIND | MS_REMOUNT | MS_RDONLY | MS_NODEV)


def become(spec):
    """This process becomes the program, in the namespaces that it is in."""
    make_root(spec)
    os.chroot(spec["root"])
    os.chdir("/")
    if spec["dropAll"]:
        for capability in range(41):
            libc.prctl(PR_CAPBSET_DROP, capability, 0, 0, 0)  # fewer on older kernels
    os.setgroups(spec["groups"])
    os.setresgid(*[spec["gid"]] * 3)
    os.setresuid(*[spec["uid"]] * 3)
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if spec["noNewPrivileges"]:
        call("prctl", PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    os.execvpe(spec["argv"][0], spec["argv"], spec["env"])


def start(spec):
    """Starts the container as a child of this process, which should do nothing else, and ends it
    when this process ends. The child's process id, which is 1 for the program itself."""
    call("prctl", PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if spec["network"]:
        with open(spec["network"]) as network:
            call("setns", network.fileno(), NEW_NET)
    call("unshare", NEW_PID | NEW_MOUNT | NEW_IPC | NEW_UTS)
    pid = os.fork()
    if pid == 0:
        signal.pthread_sigmask(signal.SIG_SETMASK, [])
        socket.sethostname(spec["hostname"])
        try:
            become(spec)
        except OSError as error:
            print(f"container: {spec['argv'][0]}: {error}", flush=True)
        os._exit(127)
    return pid


def wait(pid):
    """The exit code of a child, as a container runtime says it."""
    _, status = os.waitpid(pid, 0)
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else 128 - code


# ---- the API server ----


class Api:
    """DIR is that of `control-plane start`."""

    def __init__(self, folder):
        self.address = (folder / "server").read_text().strip().removeprefix("https://")
        self.tls = ssl.create_default_context(cafile=folder / "pki/ca.crt")
        self.tls.load_cert_chain(folder / "pki/admin.crt", folder / "pki/admin.key")

    def ask(self, method, path, body=None, kind="application/json"):
        """(status, object)"""
        connection = http.client.HTTPSConnection(self.address, context=self.tls, timeout=10)
        try:
            connection.request(method, path, body and json.dumps(body), {"Content-Type": kind})
            answer = connection.getresponse()
            return answer.status, json.loads(answer.read())
        finally:
            connection.close()

    def get(self, path):
        status, found = self.ask("GET", path)
        if status != 200:
            raise LookupError(found.get("message", path))
        return found


# ---- what a pod's spec means ----


def in_namespace(pod, path):
    return f"/api/v1/namespaces/{pod['metadata']['namespace']}/{path}"


def token(api, pod, source):
    bound = {"apiVersion": "v1", "kind": "Pod", "name": pod["metadata"]["name"],
             "uid": pod["metadata"]["uid"]}
    request = {"spec": {"audiences": [source["audience"]] if source.get("audience") else [],
                        "expirationSeconds": source["expirationSeconds"], "boundObjectRef": bound}}
    account = pod["spec"]["serviceAccountName"]
    status, answer = api.ask("POST", in_namespace(pod, f"serviceaccounts/{account}/token"), request)
    if status != 201:
        raise LookupError(answer.get("message"))
    return answer["status"]["token"]


def config_map(api, pod, source):
    """{path: text} of all keys, or of the items that are asked for."""
    data = api.get(in_namespace(pod, f"configmaps/{source['name']}"))["data"]
    return {item["path"]: data[item["key"]] for item in source["items"]} if "items" in source else data


def volume_files(api, pod, volume):
    """{name: text} of a volume."""
    if "configMap" in volume:
        return config_map(api, pod, volume["configMap"])
    if "emptyDir" in volume:
        return {}
    found = {}
    for source in volume["projected"]["sources"]:
        if "serviceAccountToken" in source:
            found[source["serviceAccountToken"]["path"]] = token(api, pod, source["serviceAccountToken"])
        elif "configMap" in source:
            found |= config_map(api, pod, source["configMap"])
        else:
            found |= {item["path"]: fields(pod)[item["fieldRef"]["fieldPath"]]
                      for item in source["downwardAPI"]["items"]}
    return found


def claimed_folder(api, pod, claim):
    """The folder of the hostPath volume that a claim is bound to."""
    volume = api.get(in_namespace(pod, f"persistentvolumeclaims/{claim}"))["spec"]["volumeName"]
    return pathlib.Path(api.get(f"/api/v1/persistentvolumes/{volume}")["spec"]["hostPath"]["path"])


def make_volumes(api, pod, folder):
    """Fills a folder for each volume; {name of the volume: folder}."""
    group = pod["spec"].get("securityContext", {}).get("fsGroup", 0)
    made = {}
    for volume in pod["spec"].get("volumes", []):
        if "persistentVolumeClaim" in volume:
            at = claimed_folder(api, pod, volume["persistentVolumeClaim"]["claimName"])
        else:
            at = folder / volume["name"]
            at.mkdir(parents=True)
            for name, text in volume_files(api, pod, volume).items():
                (at / name).write_text(text)
                os.chown(at / name, 0, group)
                (at / name).chmod(0o640)
        os.chown(at, 0, group)
        at.chmod(0o2755 if "configMap" in volume or "projected" in volume else 0o2775)
        made[volume["name"]] = at
    return made


def mounts(container, volumes):
    """[(source, target, read only)] for make_root."""
    return [(str(volumes[m["name"]] / m.get("subPath", "")), m["mountPath"], m.get("readOnly", False))
            for m in container.get("volumeMounts", [])]


def fields(pod, ip=None):
    """What fieldRefs name."""
    metadata = pod["metadata"]
    found = {"metadata.name": metadata["name"], "metadata.namespace": metadata["namespace"],
             "metadata.uid": metadata["uid"], "status.podIP": ip, "status.hostIP": "127.0.0.1",
             "spec.nodeName": pod["spec"].get("nodeName")}
    for kind in ("labels", "annotations"):
        found |= {f"metadata.{kind}['{key}']": value for key, value in metadata.get(kind, {}).items()}
    return found


def expand(text, environment):
    """$(NAME) becomes its value, $$ a dollar, and what is not known stays."""
    return re.sub(r"\$(?:\$|\((\w+)\))",
                  lambda m: "$" if not m[1] else environment.get(m[1], m[0]), text)


def environment(pod, container, image, ip, service_host):
    """What the program's environment is, over that of the image."""
    found = image | {"HOSTNAME": pod["spec"].get("hostname", pod["metadata"]["name"]),
                     "KUBERNETES_SERVICE_HOST": service_host, "KUBERNETES_SERVICE_PORT": "443",
                     "KUBERNETES_SERVICE_PORT_HTTPS": "443", "KUBERNETES_PORT": f"tcp://{service_host}:443"}
    for entry in container.get("env", []):
        reference = entry.get("valueFrom", {}).get("fieldRef")
        found[entry["name"]] = (fields(pod, ip)[reference["fieldPath"]] if reference
                                else expand(entry.get("value", ""), found))
    return found


def command(container, entrypoint, environment):
    return [expand(word, environment)
            for word in container.get("command", entrypoint) + container.get("args", [])]


def security(pod, container):
    """The part of start's spec that the security contexts decide."""
    of_pod, own = pod["spec"].get("securityContext", {}), container.get("securityContext", {})
    user = own.get("runAsUser", of_pod.get("runAsUser", 65532))
    if of_pod.get("runAsNonRoot") and user == 0:
        raise LookupError("runAsNonRoot, and the user is 0")
    return {"readOnly": own.get("readOnlyRootFilesystem", False),
            "dropAll": "ALL" in own.get("capabilities", {}).get("drop", []),
            "noNewPrivileges": own.get("allowPrivilegeEscalation") is False,
            "uid": user, "gid": own.get("runAsGroup", of_pod.get("runAsGroup", 0)),
            "groups": [of_pod["fsGroup"]] if "fsGroup" in of_pod else []}
