package workload

import (
	"context"
	"fmt"
	"maps"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/lab/kube/process"
)

// Program is a real program that runs instead of an image.
type Program struct {
	Path string // binary
	Data string // directory with the image's data; only flux-operator has one
	// Args, if not nil, returns additional flags, which override those of the container. nil: the flags that every Flux
	// controller needs here.
	Args func(c Container) []string
	// Ready, if not nil, returns the URL of the readiness probe. nil: the probe of the container; without one the
	// program is ready at once.
	Ready func(c Container) string
	// Hostname gives the program its pod's name as host name, with which replicas elect a leader.
	Hostname bool
	// InCluster lets the program see the cluster as in a container: its service account's folder, the variables with the API
	// server's address, and the names of Services. The others use a kubeconfig, and need no mount namespace.
	InCluster bool
}

// start runs the program as the container's only process.
func (p Program) start(ctx context.Context, name string, extraEnv []string, c Container) (*Instance, error) {
	env, err := environment(ctx, c.Cluster.Client, c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	kubeconfig, err := writeKubeconfig(ctx, c)
	if err != nil {
		cancel()
		return nil, err
	}
	tmp := filepath.Join(c.Dir, "tmp")
	for _, dir := range []string{tmp, filepath.Join(c.Dir, "data")} {
		if err := os.MkdirAll(dir, 0o755); err != nil {
			cancel()
			return nil, err
		}
	}
	var args []string
	for _, a := range c.Spec.Args {
		args = append(args, expand(a, env))
	}
	if p.Args != nil {
		args = append(args, p.Args(c)...)
	} else {
		args = append(args, p.overrides(name, c)...) // the last occurrence of a flag wins
	}
	maps.Copy(env, map[string]string{"KUBECONFIG": kubeconfig, "HOME": c.Dir, "TMPDIR": tmp, "PATH": "/usr/bin:/bin", "HOSTNAME": c.Pod.Name})
	var mounts map[string]string
	if p.InCluster {
		if mounts, err = inCluster(ctx, c, tokenPath(c), env); err != nil {
			cancel()
			return nil, err
		}
	}
	if name == "flux-operator" {
		env["GODEBUG"] = "fips140=on"
	}
	list := slices.Clone(extraEnv)
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	hostname := ""
	if p.Hostname {
		hostname = c.Pod.Name
	}
	proc, err := process.Start(process.Spec{Hostname: hostname, Cluster: c.Cluster.Name, Node: c.Node, Name: c.Pod.Namespace + "/" + c.Pod.Name, Path: p.Path,
		Args: args, Env: list, Dir: c.Dir, Log: c.LogPath, Output: c.Log, Mounts: mounts, Table: c.Cluster.Processes})
	if err != nil {
		cancel()
		return nil, err
	}
	i := NewInstance()
	i.OnStop = func(ctx context.Context, grace time.Duration) { proc.Stop(ctx, grace) }
	go func() {
		defer cancel()
		<-proc.Done()
		i.Exit(proc.ExitCode())
	}()
	go p.probe(ctx, c, i)
	return i, nil
}

// overrides are the flags with which programs of several nodes can share a network namespace: each listens on its pod's
// address only. Names of Services do not resolve here, so another address is advertised, and there is no notification-controller
// for events. Leader election is off, because it would only delay the start.
func (p Program) overrides(name string, c Container) []string {
	at := func(port uint16) string { return netip.AddrPortFrom(c.PodIP, port).String() }
	flags := []string{"--metrics-addr=" + at(8080), "--enable-leader-election=false"}
	switch name {
	case "flux-operator":
		return append(flags, "--health-addr="+at(8081), "--storage-path="+p.Data, "--web-server-port=0")
	case sourceController:
		return append(flags, "--health-addr="+at(9440), "--events-addr=", "--storage-path="+filepath.Join(c.Dir, "data"),
			"--storage-addr="+at(9090), "--storage-adv-addr="+advertised(c, at(9090)))
	default:
		return append(flags, "--health-addr="+at(9440), "--events-addr=")
	}
}

// advertised is the address of source-controller in the URLs of its artifacts. Really that of its Service, which outlives the pod: others
// that still have a former pod's URL would ask an address that is gone, for minutes.
func advertised(c Container, pod string) string {
	const flag = "--storage-adv-addr="
	for _, arg := range c.Spec.Args {
		if name, is := strings.CutPrefix(arg, flag); is && c.Cluster.Loopback.IsValid() {
			service, _, _ := strings.Cut(name, ".")
			return netip.AddrPortFrom(c.Cluster.Loopback, servicePort(c.Pod.Namespace, service)).String()
		}
	}
	return pod
}

// port returns the number of a probe's port, which may be given by name.
func port(c Container, value string) (string, error) {
	if _, err := strconv.Atoi(value); err == nil {
		return value, nil
	}
	for _, p := range c.Spec.Ports {
		if p.Name == value {
			return strconv.Itoa(int(p.ContainerPort)), nil
		}
	}
	return "", fmt.Errorf("container %s has no port named %q", c.Spec.Name, value)
}
