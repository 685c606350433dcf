package services

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strconv"
	"time"

	"github.com/slipway-platform/slipway/lab/workload"

	corev1 "k8s.io/api/core/v1"
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

// startWebhook runs the real webhook, which listens on a port of all addresses. Other programs have this port, so the program gets a free
// one, and connections to its port at the pod's address are forwarded.
func startWebhook(ctx context.Context, c workload.Container, path string, env, flags []string) (*workload.Instance, error) {
	set, err := options(ctx, c)
	if err != nil {
		return nil, err
	}
	mounts := c.Spec.VolumeMounts
	at := slices.IndexFunc(mounts, func(m corev1.VolumeMount) bool { return m.MountPath == set["cert-dir"] })
	if at < 0 {
		return nil, fmt.Errorf("container %s: nothing is mounted at %s", c.Spec.Name, set["cert-dir"])
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", net.JoinHostPort(c.PodIP.String(), set["port"]))
	if err != nil {
		return nil, err
	}
	port, err := unusedPort(ctx)
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	mounted, unmount := context.WithCancel(ctx)
	certificates, err := workload.MountedVolume(mounted, c, mounts[at], time.Second)
	if err != nil {
		unmount()
		return nil, errors.Join(err, listener.Close())
	}
	p := workload.Program{Path: path, InCluster: true, Args: func(workload.Container) []string {
		return append(flags, "--port="+strconv.Itoa(port), "--cert-dir="+certificates)
	}}
	i, err := p.Start(ctx, "external-secrets", env, c)
	if err != nil {
		unmount()
		return nil, errors.Join(err, listener.Close())
	}
	go forward(listener, net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	go func() {
		select {
		case <-i.Done():
		case <-ctx.Done():
		}
		unmount()
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
			workload.Forward(in, to)
		}()
	}
}
