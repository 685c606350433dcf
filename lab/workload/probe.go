package workload

import (
	"context"
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// probe updates the readiness of a program, by the program's own probe or by that of its container. Without a probe it is ready at once.
// The period is shorter than a real kubelet's, to keep a rehearsal short.
func (p Program) probe(ctx context.Context, c Container, i *Instance) {
	passes, err := p.readiness(c, i)
	if err != nil {
		c.Cluster.Log.Warn("readiness probe", "pod", c.Pod.Name, "err", err)
		return
	}
	if passes == nil {
		i.SetReady(true)
		return
	}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	misses := 0
	for {
		ok := passes(ctx)
		if ok {
			misses = 0
			tick.Reset(2 * time.Second)
		} else {
			misses++
			tick.Reset(250 * time.Millisecond)
		}
		if ok || misses >= 3 {
			i.SetReady(ok)
		}
		select {
		case <-ctx.Done():
			return
		case <-i.Done():
			return
		case <-tick.C:
		}
	}
}

// readiness returns the check of a program's readiness; nil if it has none.
func (p Program) readiness(c Container, i *Instance) (passes func(context.Context) bool, err error) {
	spec := c.Spec.ReadinessProbe
	var url string
	switch {
	case p.Ready != nil:
		url = p.Ready(c)
	case spec == nil:
	case spec.HTTPGet != nil:
		if url, err = probeURL(c, *spec.HTTPGet); err != nil {
			return nil, err
		}
	case spec.Exec != nil && i.OnExec != nil:
		timeout := time.Duration(max(1, spec.TimeoutSeconds)) * time.Second
		return func(ctx context.Context) bool {
			ctx, cancel := context.WithTimeout(ctx, timeout)
			defer cancel()
			code, err := i.Exec(ctx, spec.Exec.Command, nil, io.Discard, io.Discard)
			return err == nil && code == 0
		}, nil
	}
	if url == "" {
		return nil, nil
	}
	// As a kubelet does, it asks any server, whatever its certificate.
	transport := &http.Transport{DisableKeepAlives: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}
	client := &http.Client{Timeout: time.Second, Transport: transport}
	return func(ctx context.Context) bool { return get(ctx, client, url) }, nil
}

func probeURL(c Container, of corev1.HTTPGetAction) (string, error) {
	number, err := port(c, of.Port.String())
	scheme := "http"
	if of.Scheme == corev1.URISchemeHTTPS {
		scheme = "https"
	}
	return scheme + "://" + net.JoinHostPort(c.PodIP.String(), number) + "/" + strings.TrimPrefix(of.Path, "/"), err
}

func get(ctx context.Context, client *http.Client, url string) bool {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return false
	}
	res, err := client.Do(req)
	if err != nil {
		return false
	}
	_ = res.Body.Close()
	return res.StatusCode >= 200 && res.StatusCode < 400
}
