// Package namespace runs the lab in its own Linux namespaces – user, mount, network, pid – without root. Programs in
// them have the lab's addresses and names, and no access to the network outside. When pid 1 of them ends, for whatever
// cause, the kernel ends everything else in them and removes the mounts and addresses.
package namespace

import (
	"os"
	"os/exec"
	"strconv"
	"syscall"
)

// Command prepares argv to run as pid 1 of new namespaces, as root in them. That root is the calling user, so files
// keep their owner. With dieWithParent the kernel kills it when the calling thread ends, even by SIGKILL; the caller
// must lock the goroutine to its thread before the start.
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

// Enter prepares argv to run in the folder dir inside the namespaces whose pid 1 has the number pid here. It uses
// util-linux's nsenter: a process with threads cannot change its user namespace, and a Go process has threads before
// main.
func Enter(pid int, dir string, env []string, argv ...string) *exec.Cmd {
	args := []string{"--target=" + strconv.Itoa(pid), "--user", "--preserve-credentials", "--mount", "--net", "--pid", "--",
		"/bin/sh", "-c", `cd "$0" && exec "$@"`, dir} // a folder opened out here would not show the lab's mounts
	c := exec.Command("nsenter", append(args, argv...)...)
	c.Env = env
	return c
}
