package kubelet

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	apiremote "k8s.io/apimachinery/pkg/util/remotecommand"
	clientremote "k8s.io/client-go/tools/remotecommand"
	"k8s.io/kubelet/pkg/cri/streaming/remotecommand"
	utilexec "k8s.io/utils/exec"

	"github.com/slipway-platform/slipway/lab/workload"
)

// handler is the kubelet's API: logs and exec.
func (k *Kubelet) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") })
	mux.HandleFunc("GET /containerLogs/{namespace}/{pod}/{container}", k.serveLogs)
	mux.HandleFunc("/exec/{namespace}/{pod}/{container}", k.serveExec)
	mux.HandleFunc("/exec/{namespace}/{pod}/{uid}/{container}", k.serveExec)
	for _, path := range []string{
		"/attach/", "/portForward/", "/run/", "/checkpoint/", "/metrics", "/metrics/", "/stats/", "/logs/", "/configz", "/pods",
		"/runningpods/",
	} {
		mux.HandleFunc(path, func(w http.ResponseWriter, r *http.Request) {
			http.Error(w, "the lab's kubelets do not model "+r.URL.Path+"; logs and exec work", http.StatusNotImplemented)
		})
	}
	accepted := k.o.AcceptedCAs
	if accepted == nil {
		accepted = k.c.o.ControlPlane.ClusterCA()
	}
	return newAccess(k.c.client, accepted, k.o.Name).protect(mux)
}

// container finds a container of this node by the request's path.
func (k *Kubelet) container(r *http.Request) (container, error) {
	namespace, name, cname := r.PathValue("namespace"), r.PathValue("pod"), r.PathValue("container")
	pod, err := k.c.pods.Pods(namespace).Get(name)
	if err != nil || pod.Spec.NodeName != k.o.Name {
		return container{}, fmt.Errorf("pod %q in namespace %q not found on node %q", name, namespace, k.o.Name)
	}
	s := k.runtime.sandbox(pod.UID)
	if s == nil {
		if c, ok := k.endedContainer(pod, cname); ok {
			return c, nil
		}
		return container{}, fmt.Errorf("container %q in pod %q is waiting to start", cname, name)
	}
	c, ok := s.get(cname)
	if !ok {
		return container{}, fmt.Errorf("container %q in pod %q is waiting to start: PodInitializing", cname, name)
	}
	return c, nil
}

// endedContainer is a container of a pod that has ended: its logs stay until the pod is deleted.
func (k *Kubelet) endedContainer(pod *corev1.Pod, name string) (container, bool) {
	if !hasEnded(pod.Status) {
		return container{}, false
	}
	for _, s := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if s.Name != name || s.State.Terminated == nil {
			continue
		}
		c := container{log: k.c.logPath(pod, name, s.RestartCount), restarts: s.RestartCount, ended: s.State.Terminated}
		if s.RestartCount > 0 {
			c.previous = k.c.logPath(pod, name, s.RestartCount-1)
		}
		return c, true
	}
	return container{}, false
}

func (k *Kubelet) serveLogs(w http.ResponseWriter, r *http.Request) {
	c, err := k.container(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	o, previous, err := parseLogOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	path, ended := c.log, closed()
	if c.instance != nil {
		ended = c.instance.Done()
	}
	if previous {
		path, ended = c.previous, closed()
		if c.instance == nil && c.ended != nil && c.waiting.Reason != "" {
			path = c.log // it will be restarted, so the previous run has just ended
		}
	}
	if path == "" && !previous {
		http.Error(w, fmt.Sprintf("container %q in pod %q is waiting to start: %s",
			r.PathValue("container"), r.PathValue("pod"), waitingText(c.waiting.Reason)), http.StatusBadRequest)
		return
	}
	if path == "" {
		http.Error(w, fmt.Sprintf("previous terminated container %q in pod %q not found",
			r.PathValue("container"), r.PathValue("pod")), http.StatusBadRequest)
		return
	}
	w.Header().Set("Content-Type", "text/plain")
	w.Header().Set("Transfer-Encoding", "chunked")
	out := flusher{w, http.NewResponseController(w)}
	out.Flush()
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	defer context.AfterFunc(k.life, cancel)()
	if err := readLog(ctx, path, o, ended, out); err != nil {
		k.log.Debug("log not read", "path", path, "err", err)
	}
}

// waitingText is a kubelet's explanation why a container has no log.
func waitingText(reason string) string {
	switch reason {
	case "ErrImagePull", "ImagePullBackOff":
		return "trying and failing to pull image"
	case "":
		return "ContainerCreating"
	}
	return reason
}

// flusher sends everything that is written to the reader at once.
type flusher struct {
	http.ResponseWriter
	c *http.ResponseController
}

func (f flusher) Flush() { _ = f.c.Flush() }

func closed() <-chan struct{} {
	ch := make(chan struct{})
	close(ch)
	return ch
}

func parseLogOptions(r *http.Request) (o logOptions, previous bool, err error) {
	q := r.URL.Query()
	o.tail = -1
	o.follow, o.timestamps, previous = q.Get("follow") == "true", q.Get("timestamps") == "true", q.Get("previous") == "true"
	if s := q.Get("tailLines"); s != "" {
		if o.tail, err = strconv.Atoi(s); err != nil {
			return o, previous, fmt.Errorf("tailLines: %w", err)
		}
	}
	if s := q.Get("sinceSeconds"); s != "" {
		n, err := strconv.Atoi(s)
		if err != nil {
			return o, previous, fmt.Errorf("sinceSeconds: %w", err)
		}
		o.since = time.Now().Add(-time.Duration(n) * time.Second)
	}
	if s := q.Get("sinceTime"); s != "" {
		if o.since, err = time.Parse(time.RFC3339, s); err != nil {
			return o, previous, fmt.Errorf("sinceTime: %w", err)
		}
	}
	return o, previous, nil
}

func (k *Kubelet) serveExec(w http.ResponseWriter, r *http.Request) {
	c, err := k.container(r)
	if err == nil && c.instance == nil {
		err = fmt.Errorf("container %q not running", r.PathValue("container"))
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	options, err := remotecommand.NewOptions(r)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	// These are a kubelet's protocols. The API server translates websockets before.
	remotecommand.ServeExec(w, r, executor{c.instance}, r.PathValue("pod"), "", r.PathValue("container"), r.URL.Query()["command"], options,
		4*time.Hour, apiremote.DefaultStreamCreationTimeout, apiremote.SupportedStreamingProtocols)
}

// executor runs commands in an instance.
type executor struct{ instance *workload.Instance }

// ExecInContainer runs a command; its signature is that of the streaming library.
func (e executor) ExecInContainer(
	ctx context.Context, _ string, _ types.UID, _ string, cmd []string, in io.Reader, out, errOut io.WriteCloser, _ bool,
	_ <-chan clientremote.TerminalSize, _ time.Duration,
) error {
	var stderr io.Writer = errOut
	if errOut == nil {
		stderr = io.Discard // with a terminal there is only one stream
		if out != nil {
			stderr = out
		}
	}
	var stdout io.Writer = out
	if out == nil {
		stdout = io.Discard
	}
	code, err := e.instance.Exec(ctx, cmd, in, stdout, stderr)
	if err != nil {
		return err
	}
	if code != 0 {
		return utilexec.CodeExitError{Err: fmt.Errorf("command terminated with exit code %d", code), Code: code}
	}
	return nil
}
