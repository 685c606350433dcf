package namespace

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
)

// Check returns nil if a lab can run here, or an error with the cause and the remedy. probe is a command that calls
// Probe; it runs in new namespaces.
func Check(probe ...string) error {
	if runtime.GOOS != "linux" {
		return fmt.Errorf("the lab needs Linux and its namespaces, this is %s; run it in a Linux VM", runtime.GOOS)
	}
	for _, tool := range []string{"nsenter", "git"} {
		if _, err := exec.LookPath(tool); err != nil {
			return fmt.Errorf("the lab needs %s, which is not on PATH; install the package %s", tool, map[string]string{"nsenter": "util-linux", "git": "git"}[tool])
		}
	}
	out, err := Command(true, probe...).CombinedOutput()
	if err == nil {
		return nil
	}
	return fmt.Errorf("the lab needs user namespaces, which this system refuses (%s); %s", reason(out, err), remedy())
}

func reason(out []byte, err error) string {
	if line, _, _ := strings.Cut(strings.TrimSpace(string(out)), "\n"); line != "" {
		return line
	}
	return err.Error()
}

// remedy names the sysctl by which a distribution restricts user namespaces.
func remedy() string {
	set := func(path, value string) bool {
		b, err := os.ReadFile(path)
		return err == nil && strings.TrimSpace(string(b)) == value
	}
	switch {
	case set("/proc/sys/kernel/apparmor_restrict_unprivileged_userns", "1"):
		return "Ubuntu restricts them by AppArmor: run `sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0`"
	case set("/proc/sys/kernel/unprivileged_userns_clone", "0"):
		return "run `sudo sysctl -w kernel.unprivileged_userns_clone=1`"
	case set("/proc/sys/user/max_user_namespaces", "0"):
		return "run `sudo sysctl -w user.max_user_namespaces=10000`"
	}
	return "in a container, allow it to create them (and to mount /proc), or run the lab on the host"
}
