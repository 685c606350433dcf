// Package namespace puts the lab into Linux namespaces of its own – user, mount, network, pid – without root. What
// runs in them sees the lab's addresses and names and nothing of the network outside; when pid 1 of them ends, by
// whatever cause, the kernel ends everything else in them and takes the mounts and addresses away.
package namespace

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Command prepares argv to run as pid 1 of new namespaces, as root in them. The caller's user is that root: files
// keep their owner. With dieWithParent the kernel kills it when the calling thread ends, even by SIGKILL; lock the
// goroutine to its thread before starting it.
func Command(dieWithParent bool, argv ...string) *exec.Cmd {
	c := exec.Command(argv[0], argv[1:]...)
	c.SysProcAttr = &syscall.SysProcAttr{
		Cloneflags:  syscall.CLONE_NEWUSER | syscall.CLONE_NEWNS | syscall.CLONE_NEWNET | syscall.CLONE_NEWPID,
		UidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getuid(), Size: 1}},
		GidMappings: []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Getgid(), Size: 1}},
		Setsid:      true,
	}
	if dieWithParent {
		c.SysProcAttr.Pdeathsig = syscall.SIGKILL
	}
	return c
}

// Enter prepares argv to run inside the namespaces whose pid 1 is pid here, in the folder dir, by util-linux's
// nsenter: a Go process has threads before main, and a process with threads cannot change its user namespace.
func Enter(pid int, dir string, env []string, argv ...string) *exec.Cmd {
	args := []string{"--target=" + strconv.Itoa(pid), "--user", "--preserve-credentials", "--mount", "--net", "--pid", "--",
		"/bin/sh", "-c", `cd "$0" && exec "$@"`, dir} // a folder opened out here would show what is not mounted over
	c := exec.Command("nsenter", append(args, argv...)...)
	c.Env = env
	return c
}
