package workload

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
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

// Start runs the program as the container's only process.
func (p Program) Start(ctx context.Context, name string, extraEnv []string, c Container) (*Instance, error) {
	i, ctx := NewInstance(ctx)
	spec, err := p.process(ctx, name, c)
	if err == nil {
		spec.Env = slices.Concat(extraEnv, spec.Env)
		err = i.run(spec)
	}
	if err != nil {
		i.Exit(1)
		return nil, err
	}
	go p.probe(ctx, c, i)
	return i, nil
}

// process prepares the program's process. ctx ends with the container.
func (p Program) process(ctx context.Context, name string, c Container) (process.Spec, error) {
	spec := process.Spec{Cluster: c.Cluster.Name, Node: c.Node, Name: c.Pod.Namespace + "/" + c.Pod.Name, Path: p.Path,
		Dir: c.Dir, Log: c.LogPath, Output: c.Log, Table: c.Cluster.Processes}
	if p.Hostname {
		spec.Hostname = c.Pod.Name
	}
	env, err := Environment(ctx, c)
	if err != nil {
		return spec, err
	}
	kubeconfig, err := writeKubeconfig(ctx, c)
	if err != nil {
		return spec, err
	}
	tmp := filepath.Join(c.Dir, "tmp")
	if err := errors.Join(os.MkdirAll(tmp, 0o755), os.MkdirAll(filepath.Join(c.Dir, "data"), 0o755)); err != nil {
		return spec, err
	}
	for _, a := range c.Spec.Args {
		spec.Args = append(spec.Args, Expand(a, env))
	}
	if p.Args != nil {
		spec.Args = append(spec.Args, p.Args(c)...)
	} else {
		spec.Args = append(spec.Args, p.overrides(name, c)...) // the last occurrence of a flag wins
	}
	maps.Copy(env, map[string]string{"KUBECONFIG": kubeconfig, "HOME": c.Dir, "TMPDIR": tmp, "PATH": "/usr/bin:/bin", "HOSTNAME": c.Pod.Name})
	if p.InCluster {
		if spec.Mounts, err = inCluster(ctx, c, env); err != nil {
			return spec, err
		}
	}
	if name == "flux-operator" {
		env["GODEBUG"] = "fips140=on"
	}
	spec.Env = variables(env)
	return spec, nil
}

// variables is an environment in the form of a process.
func variables(env map[string]string) (list []string) {
	for _, k := range slices.Sorted(maps.Keys(env)) {
		list = append(list, k+"="+env[k])
	}
	return list
}

// run starts a process, which is the instance from now on.
func (i *Instance) run(spec process.Spec) error {
	p, err := process.Start(spec)
	if err != nil {
		return err
	}
	i.OnStop = func(ctx context.Context, grace time.Duration) { p.Stop(ctx, grace) }
	go func() {
		<-p.Done()
		i.Exit(p.ExitCode())
	}()
	return nil
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
	case SourceController:
		return append(flags, "--health-addr="+at(9440), "--events-addr=", "--storage-path="+filepath.Join(c.Dir, "data"),
			"--storage-addr="+at(9090), "--storage-adv-addr="+advertised(c, at(9090)))
	default:
		return append(flags, "--health-addr="+at(9440), "--events-addr=")
	}
}

// advertised is the address of source-controller in the URLs of its artifacts: its Service's, which outlives the pod. Controllers
// with the URL of a former pod would ask an address that is gone, for minutes.
func advertised(c Container, pod string) string {
	const flag = "--storage-adv-addr="
	for _, arg := range c.Spec.Args {
		if name, is := strings.CutPrefix(arg, flag); is && c.Cluster.Loopback.IsValid() {
			service, _, _ := strings.Cut(name, ".")
			return netip.AddrPortFrom(c.Cluster.Loopback, ServicePort(c.Pod.Namespace, service)).String()
		}
	}
	return pod
}

// SourceController is the name of the Service of Flux's source-controller. The names of its shards begin with it.
const SourceController = "source-controller"

// ServicePort is the port of the cluster's loopback address at which a Service is served that programs know by its name. Names do not
// resolve in the lab, and addresses of Services may be the same in several clusters.
func ServicePort(namespace, name string) uint16 {
	hash := fnv.New32a()
	_, _ = hash.Write([]byte(namespace + "/" + name))
	return uint16(20000 + hash.Sum32()%10000)
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
