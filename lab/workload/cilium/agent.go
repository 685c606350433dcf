package cilium

import (
	"context"
	"fmt"
	"io"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/wait"
	"github.com/slipway-platform/slipway/lab/workload"

	corev1 "k8s.io/api/core/v1"
)

// crdsTimeout is how long a real agent waits until the operator has created Cilium's CRDs.
const crdsTimeout = 5 * time.Minute

// agent is a simulated Cilium agent. It waits like a real one, writes the log of its start, creates its CiliumNode, and answers the status
// commands.
type agent struct {
	*workload.Instance
	workload.Container
	shared *Cilium
	config ciliumConfig
	wake   chan struct{}

	prober prober
	mesh   mesh

	mu   sync.Mutex
	node string // the CiliumNode as last written
}

func (n *Cilium) startAgent(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	i, ctx := workload.NewInstance(ctx)
	a := &agent{Instance: i, Container: c, shared: n, wake: make(chan struct{}, 1)}
	i.OnExec = a.exec
	n.join(a)
	go func() {
		<-i.Done()
		n.leave(a)
	}()
	a.logf("info", `msg="Cilium %s" subsys=daemon`, version(a.Container))
	go a.run(ctx)
	return i, nil
}

// run starts the agent, waits until it can be ready, and follows its node.
func (a *agent) run(ctx context.Context) {
	if !wait.Pause(ctx, a.Cluster.PodStart) {
		return
	}
	config, err := readCiliumConfig(ctx, a.Container)
	if err != nil {
		a.die(`msg="unable to read the configuration of config-map:%s/%s" error=%q`, a.Pod.Namespace, ciliumConfigMap, err)
		return
	}
	a.mu.Lock()
	a.config = config
	a.mu.Unlock()
	a.logf("info", `msg="  --cluster-id=%s" subsys=daemon`, config.get("cluster-id", "0"))
	a.logf("info", `msg="  --cluster-name=%s" subsys=daemon`, config.cluster())
	reported := ""
	started := time.Now()
	for {
		faults := a.Cluster.Faults.Changed()
		changed := a.shared.Changed()
		if detail, on := a.crashed(); on {
			if wait.Pause(ctx, max(a.Cluster.PodStart/2, time.Millisecond)) {
				a.crash(detail)
			}
			return
		}
		var again <-chan time.Time
		var others <-chan struct{}
		if lacks, retry := a.prepare(ctx); lacks != "" {
			if lacks != reported && !a.Ready() {
				a.logf("info", "%s", lacks)
				reported = lacks
			}
			if time.Since(started) > crdsTimeout && !a.Ready() {
				a.die(`msg="Unable to find all Cilium CRDs necessary within %s timeout. `+
					`Please ensure that Cilium Operator is running, as it's responsible for registering all the Cilium CRDs. `+
					`The following CRDs were not found: [crd:ciliumnodes.cilium.io]" error="context deadline exceeded"`, crdsTimeout)
				return
			}
			again, others = time.After(retry), changed
		} else if !a.Ready() {
			a.shared.introduce(a)
			a.startProbes(ctx)
			go a.followPeers(ctx)
			a.SetReady(true)
			a.logf("info", `msg="Initializing daemon completed" subsys=daemon`)
			a.shared.Notify()
		}
		select {
		case <-ctx.Done():
			return
		case <-faults:
		case <-a.wake:
		case <-others:
		case <-again:
		}
	}
}

// prepare does what must be done before the agent is ready, and after each change of its node. It returns what is
// lacking and when to try again.
func (a *agent) prepare(ctx context.Context) (lacks string, retry time.Duration) {
	custom := a.Cluster.Dynamic != nil
	if custom && !a.shared.crdsExist(ctx, a.Cluster) {
		return `msg="Still waiting for Cilium Operator to register CRDs" crds="[crd:ciliumnodes.cilium.io]" subsys=k8s`, time.Second
	}
	n := a.self()
	if n == nil {
		return fmt.Sprintf(`msg="Waiting for k8s node information" error="node %s not found" subsys=daemon`, a.Node), time.Second
	}
	ranges := PodCIDRs(n, a.Cluster.Faults)
	if len(ranges) == 0 {
		return `msg="Waiting for k8s node information" error="required IPv4 PodCIDR not available" subsys=daemon`, time.Second
	}
	if custom {
		if err := a.announce(ctx, n, ranges); err != nil {
			return fmt.Sprintf(`msg="Unable to create CiliumNode resource, will retry" error=%q subsys=nodediscovery`, err), time.Second
		}
	}
	return "", 0
}

func (a *agent) self() *corev1.Node {
	for _, n := range a.Cluster.Nodes() {
		if n.Name == a.Node {
			return n
		}
	}
	return nil
}

func (a *agent) poke() { workload.Poke(a.wake) }

// crash ends the agent as if it could not load its programs.
func (a *agent) crash(detail string) {
	if detail == "" {
		detail = "attaching cil_from_netdev to interface eth0: replacing program for network interface: creating link: file exists"
	}
	a.logf("error", `msg="Start hook failed" function="cmd.newDaemonPromise.func2" `+
		`error="daemon creation failed: error while initializing daemon: failed while reinitializing datapath: %s"`, detail)
	a.die(`msg="failed to start: daemon creation failed: error while initializing daemon: `+
		`failed while reinitializing datapath: %s" subsys=daemon`, detail)
}

func (a *agent) die(format string, args ...any) {
	a.logf("fatal", format, args...)
	a.Exit(1)
}

func (a *agent) logf(level, format string, args ...any) {
	fmt.Fprintf(a.Log, "time=%s level=%s "+format+"\n", append([]any{time.Now().UTC().Format(time.RFC3339Nano), level}, args...)...)
}

// version is the tag of the container's image.
func version(c workload.Container) string {
	image, _, _ := strings.Cut(c.Spec.Image, "@")
	if slash, colon := strings.LastIndex(image, "/"), strings.LastIndex(image, ":"); colon > slash {
		return strings.TrimPrefix(image[colon+1:], "v")
	}
	return "unknown"
}

// settings is the configuration that the agent runs with; empty before it has been read.
func (a *agent) settings() ciliumConfig {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.config
}

// exec runs the status commands that a real agent's image contains.
func (a *agent) exec(ctx context.Context, cmd []string, _ io.Reader, stdout, stderr io.Writer) (int, error) {
	if len(cmd) < 2 {
		return workload.UnknownCommand(cmd, stderr)
	}
	program, command := path.Base(cmd[0]), cmd[1]
	if program == "cilium" {
		program = "cilium-dbg" // the former name, which the images still have
	}
	switch {
	case (program == "cilium-health" || program == "cilium-dbg") && command == "status":
	case program == "cilium-dbg" && command == "troubleshoot" && len(cmd) > 2 && cmd[2] == "clustermesh":
		return a.troubleshoot(ctx, cmd[3:], stdout, stderr)
	default:
		return workload.UnknownCommand(cmd, stderr)
	}
	o := statusOptions(cmd[2:])
	if !a.Ready() {
		return a.unreachable(program, o, stderr)
	}
	if program == "cilium-health" {
		return o.write(stdout, a.health(), a.healthText)
	}
	return o.write(stdout, a.status(), a.statusText)
}

// unreachable is the output of the commands before the agent listens on its sockets.
func (a *agent) unreachable(program string, o statusFlags, stderr io.Writer) (int, error) {
	message := "Get \"http://localhost/v1/healthz?brief=false&require-k8s-connectivity=true\": " +
		"dial unix /var/run/cilium/cilium.sock: connect: no such file or directory\nIs the agent running?\n"
	switch {
	case program == "cilium-health":
		message = "Error: Cannot get status: Get \"http://localhost/v1beta/status\": " +
			"dial unix /var/run/cilium/health.sock: connect: no such file or directory\nIs the agent running?\n\n"
	case o.short:
		message = "cilium: daemon unreachable\n"
	}
	_, err := io.WriteString(stderr, message)
	return 1, err
}
