package services

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-platform/slipway/lab/workload"

	corev1 "k8s.io/api/core/v1"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// ExternalSecrets runs the real external-secrets, whose one program is the controller, the webhook and the controller of the
// webhook's certificates. env is added to its environment.
func ExternalSecrets(path string, env []string) workload.Behaviour {
	return func(ctx context.Context, c workload.Container) (*workload.Instance, error) {
		at := func(port uint16) string { return netip.AddrPortFrom(c.PodIP, port).String() }
		flags := []string{"--metrics-addr=" + at(8080)}
		switch role(c) {
		case "webhook":
			return startWebhook(ctx, c, path, env, append(flags, "--healthz-addr="+at(8081)))
		case "certcontroller":
			flags = append(flags, "--healthz-addr="+at(8081), "--enable-leader-election=false")
		default:
			flags = append(flags, "--live-addr="+at(8082), "--enable-leader-election=false")
		}
		p := workload.Program{Path: path, InCluster: true, Args: func(workload.Container) []string { return flags }}
		return p.Start(ctx, "external-secrets", env, c)
	}
}

// role is the subcommand of a container of external-secrets; "" is the controller.
func role(c workload.Container) string {
	if len(c.Spec.Args) == 0 || c.Spec.Args[0] == "" || c.Spec.Args[0][0] == '-' {
		return ""
	}
	return c.Spec.Args[0]
}

// startWebhook runs the real webhook, which listens on a port of all addresses. Other programs have that port, so it gets a free
// one, and connections to its port at the pod's address are forwarded to it.
func startWebhook(ctx context.Context, c workload.Container, path string, env, flags []string) (*workload.Instance, error) {
	set, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	certificates := filepath.Join(c.Dir, "certs")
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(c.PodIP.String(), set["port"]))
	if err != nil {
		return nil, err
	}
	port, err := unusedPort(ctx)
	if err == nil {
		err = keepSecretVolume(ctx, c, set["cert-dir"], certificates)
	}
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	p := workload.Program{Path: path, InCluster: true, Args: func(workload.Container) []string {
		return append(flags, "--port="+strconv.Itoa(port), "--cert-dir="+certificates)
	}}
	i, err := p.Start(ctx, "external-secrets", env, c)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	go forward(listener, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	go func() {
		select {
		case <-i.Done():
		case <-ctx.Done():
		}
		_ = listener.Close()
	}()
	return i, nil
}

func unusedPort(ctx context.Context) (int, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", ":0")
	if err != nil {
		return 0, err
	}
	return l.Addr().(*net.TCPAddr).Port, l.Close()
}

// forward forwards connections until the listener is closed.
func forward(listener net.Listener, to string) {
	for {
		in, err := listener.Accept()
		if err != nil {
			return
		}
		go func() {
			defer in.Close()
			out, err := net.Dial("tcp", to)
			if err != nil {
				return
			}
			defer out.Close()
			go func() {
				_, _ = io.Copy(out, in)
				_ = out.(*net.TCPConn).CloseWrite()
			}()
			_, _ = io.Copy(in, out)
		}()
	}
}

// keepSecretVolume writes the Secret that a container mounts at mountPath into a folder, and again when it changes, until ctx
// ends. A kubelet takes up to a minute for that; this one takes a second.
func keepSecretVolume(ctx context.Context, c workload.Container, mountPath, folder string) error {
	name := mountedSecret(c, mountPath)
	if name == "" {
		return fmt.Errorf("container %s: no Secret is mounted at %s", c.Spec.Name, mountPath)
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	write := func(last string) (string, error) {
		s, err := c.Cluster.Client.CoreV1().Secrets(c.Pod.Namespace).Get(ctx, name, metav1.GetOptions{})
		if err != nil || s.ResourceVersion == last {
			return last, err
		}
		for _, key := range slices.Sorted(maps.Keys(s.Data)) {
			path := filepath.Join(folder, key)
			if err := errors.Join(os.WriteFile(path+".new", s.Data[key], 0o600), os.Rename(path+".new", path)); err != nil {
				return last, err
			}
		}
		return s.ResourceVersion, nil
	}
	last, err := write("none")
	if err != nil {
		return err
	}
	go func() {
		tick := time.NewTicker(time.Second)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if last, err = write(last); err != nil && ctx.Err() == nil {
				c.Cluster.Log.Debug("Secret not written", "pod", c.Pod.Name, "secret", name, "err", err)
			}
		}
	}()
	return nil
}

// mountedSecret is the name of the Secret that a container mounts at a path; "" if there is none.
func mountedSecret(c workload.Container, mountPath string) string {
	for _, mount := range c.Spec.VolumeMounts {
		at := slices.IndexFunc(c.Pod.Spec.Volumes, func(v corev1.Volume) bool { return v.Name == mount.Name })
		if mount.MountPath == mountPath && at >= 0 && c.Pod.Spec.Volumes[at].Secret != nil {
			return c.Pod.Spec.Volumes[at].Secret.SecretName
		}
	}
	return ""
}
