package services

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/slipway-platform/slipway/lab/connect"
	"github.com/slipway-platform/slipway/lab/workload"
)

// Connect has the simulated 1Password Connect servers of all clusters of a lab, which belong to one account.
type Connect struct {
	Account *connect.Account

	mu      sync.Mutex
	servers map[string]*connect.Server // by the pod's uid: its two containers share their data
}

// StartAPI runs the container of the API; StartSync that of the synchronisation. A container reads the credentials once, at
// its start, as the real one does: a changed Secret needs a new pod. It listens and becomes ready only with credentials that
// the account accepts.
func (o *Connect) StartAPI(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	return o.start(ctx, c, "8080", (*connect.Server).Handler)
}

// StartSync is like StartAPI.
func (o *Connect) StartSync(ctx context.Context, c workload.Container) (*workload.Instance, error) {
	return o.start(ctx, c, "8081", (*connect.Server).SyncHandler)
}

func (o *Connect) start(ctx context.Context, c workload.Container, port string, handler func(*connect.Server) http.Handler) (*workload.Instance, error) {
	env, err := workload.Environment(ctx, c)
	if err != nil {
		return nil, err
	}
	if env["OP_TLS_KEY_FILE"] != "" || env["OP_HTTPS_PORT"] != "" {
		return nil, errors.New("1Password Connect with TLS is not modelled by the lab")
	}
	i, ctx := workload.NewInstance(ctx)
	content, err := readSession(ctx, c, env["OP_SESSION"])
	server, address := o.server(c), net.JoinHostPort(c.PodIP.String(), cmp.Or(env["OP_HTTP_PORT"], port))
	i.After(c.Cluster.PodStart, func() {
		if err == nil {
			err = o.Account.CheckCredentials(content)
		}
		if err != nil { // the container would read the same file again, as the real one does every 30 s
			logConnect(c, 1, "(E) Server: (unable to get credentials and initialize API, retrying in 30s), "+err.Error())
			return
		}
		logConnect(c, 3, "(I) starting 1Password Connect "+connect.Version+" ...")
		listenConnect(ctx, c, i, server, address, handler(server))
	})
	context.AfterFunc(ctx, func() { o.forget(c) })
	return i, nil
}

// server returns the server of a pod.
func (o *Connect) server(c workload.Container) *connect.Server {
	o.mu.Lock()
	defer o.mu.Unlock()
	id := string(c.Pod.UID)
	if o.servers == nil {
		o.servers = map[string]*connect.Server{}
	}
	if o.servers[id] == nil {
		o.servers[id] = &connect.Server{Account: o.Account, Cluster: c.Cluster.Name, Faults: c.Cluster.Faults}
	}
	return o.servers[id]
}

func (o *Connect) forget(c workload.Container) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.servers, string(c.Pod.UID))
}

// readSession reads the credentials that OP_SESSION means: a file of the pod, or the content of one in base64.
func readSession(ctx context.Context, c workload.Container, session string) ([]byte, error) {
	switch {
	case session == "":
		return nil, errors.New("Wrapped: (failed to FindCredentialsUniqueKey), OP_SESSION is not set") //nolint:staticcheck // the form of the real text
	case strings.HasPrefix(session, "/"):
		return mountedFile(ctx, c, session)
	}
	return connect.LoadCredentials(session)
}

// mountedFile is the content of a file that a container mounts from a Secret, as it is now.
func mountedFile(ctx context.Context, c workload.Container, path string) ([]byte, error) {
	missing := fmt.Errorf("open %s: no such file or directory", path)
	for _, mount := range c.Spec.VolumeMounts {
		name, inside := strings.CutPrefix(path, strings.TrimSuffix(mount.MountPath, "/")+"/")
		if path == mount.MountPath {
			name, inside = mount.SubPath, mount.SubPath != ""
		}
		if !inside {
			continue
		}
		for _, volume := range c.Pod.Spec.Volumes {
			if volume.Name != mount.Name || volume.Secret == nil {
				continue
			}
			files, err := workload.VolumeFiles(ctx, c, volume)
			if err != nil {
				return nil, err
			}
			if content, found := files[name]; found {
				return content, nil
			}
		}
	}
	return nil, missing
}

// logConnect writes a line in the form of the server's log.
func logConnect(c workload.Container, level int, message string) {
	fmt.Fprintf(c.Log, "{\"log_message\":%q,\"timestamp\":%q,\"level\":%d}\n", message, time.Now().UTC().Format(time.RFC3339Nano), level)
}

// listenConnect serves HTTP until the container ends, except while the server is to refuse connections.
func listenConnect(ctx context.Context, c workload.Container, i *workload.Instance, server *connect.Server, address string, handler http.Handler) {
	var current *http.Server
	closeServer := func() {
		if current != nil {
			_ = current.Close()
			current = nil
		}
	}
	defer closeServer()
	for {
		changed := c.Cluster.Faults.Changed()
		switch refused := server.Refused(); {
		case refused:
			i.SetReady(false)
			closeServer()
		case current == nil:
			listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
			if err != nil {
				logConnect(c, 1, "(E) "+err.Error())
				i.Exit(1)
				return
			}
			current = &http.Server{Handler: handler, ReadHeaderTimeout: 10 * time.Second}
			go func(server *http.Server) { _ = server.Serve(listener) }(current)
			i.SetReady(true)
		}
		select {
		case <-ctx.Done():
			return
		case <-changed:
		}
	}
}
