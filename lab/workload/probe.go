package workload

import (
	"context"
	"net"
	"net/http"
	"strings"
	"time"
)

// probe updates the readiness of a program, by the program's own probe or by the HTTP probe of its container. Without a
// probe it is ready at once. The period is shorter than a real kubelet's, to keep a rehearsal short.
func (p Program) probe(ctx context.Context, c Container, i *Instance) {
	url, err := p.probeURL(c)
	if err != nil {
		c.Cluster.Log.Warn("readiness probe", "pod", c.Pod.Name, "err", err)
		return
	}
	if url == "" {
		i.SetReady(true)
		return
	}
	client := &http.Client{Timeout: time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	tick := time.NewTicker(250 * time.Millisecond)
	defer tick.Stop()
	misses := 0
	for {
		ok := get(ctx, client, url)
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

func (p Program) probeURL(c Container) (string, error) {
	spec := c.Spec.ReadinessProbe
	switch {
	case p.Ready != nil:
		return p.Ready(c), nil
	case spec == nil || spec.HTTPGet == nil:
		return "", nil
	}
	number, err := port(c, spec.HTTPGet.Port.String())
	return "http://" + net.JoinHostPort(c.PodIP.String(), number) + "/" + strings.TrimPrefix(spec.HTTPGet.Path, "/"), err
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
