package namespace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// goneWithin is how long the kernel may take to end the processes of a namespace whose pid 1 has ended.
const goneWithin = 5 * time.Second

// Watch records the network namespace of a lab whose pid 1 is pid. The returned function, called after the lab has
// ended, returns an error if a process is still in that namespace, or a mount of dir still exists here.
func Watch(pid int) (func(dir string) error, error) {
	space, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/net", pid))
	if err != nil {
		return nil, fmt.Errorf("lab: %w", err)
	}
	return func(dir string) error {
		deadline := time.Now().Add(goneWithin)
		tick := time.NewTicker(20 * time.Millisecond)
		defer tick.Stop()
		for {
			err := errors.Join(processesIn(space), mountsOf(dir))
			if err == nil || time.Now().After(deadline) {
				return err
			}
			<-tick.C
		}
	}, nil
}

func processesIn(space string) error {
	links, err := filepath.Glob("/proc/[0-9]*/ns/net")
	if err != nil {
		return err
	}
	var errs []error
	for _, link := range links {
		if at, err := os.Readlink(link); err == nil && at == space { // the processes of other users cannot be read, but they are not the lab's
			errs = append(errs, fmt.Errorf("lab: process %s is left in its namespace", strings.Split(link, "/")[2]))
		}
	}
	return errors.Join(errs...)
}

func mountsOf(dir string) error {
	mounts, err := os.ReadFile("/proc/self/mountinfo")
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	if strings.Contains(string(mounts), dir) {
		return fmt.Errorf("lab: a mount of %s is left", dir)
	}
	return nil
}
