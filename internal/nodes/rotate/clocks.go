package rotate

import (
	"context"
	"fmt"
	"net/http"
	"time"

	"github.com/slipway-platform/slipway/internal/nodes/turn"
	"github.com/slipway-platform/slipway/internal/probe"
)

// clocksApart is how far the clocks of API servers may be apart. Each dates what it creates, so pods and ConfigMaps have times of different
// clocks.
const clocksApart = 5 * time.Second

// clock is how far a node's clock is ahead of this computer's, at least and at most: its time has whole seconds, and the answer takes time.
type clock struct{ least, most time.Duration }

// checkClocks waits until the clocks of all control planes are known to be close to each other.
func (j kubernetesCA) checkClocks(ctx context.Context, nodes []turn.Node) error {
	servers := turn.ControlPlanes(nodes)
	return j.until(ctx, silentTimeout, "the clocks of the control planes", func(ctx context.Context) (string, error) {
		clocks, seen := make([]clock, len(servers)), make([]sight, len(servers))
		probe.Each(servers, func(i int, node turn.Node) {
			sent := time.Now()
			now, err := j.kubernetes.Clock(ctx, node)
			seen[i], clocks[i] = sight{node, err}, clock{time.Until(now), now.Add(time.Second).Sub(sent)}
		})
		if silent := reasons(seen); silent != "" {
			return "these API servers do not answer: " + silent, nil
		}
		return apart(servers, clocks), nil
	})
}

// apart names the two nodes whose clocks may be the furthest apart, if that is too far.
func apart(nodes []turn.Node, clocks []clock) (problem string) {
	furthest := clocksApart
	for i, ahead := range clocks {
		for k, behind := range clocks {
			if by := ahead.most - behind.least; i != k && by > furthest {
				furthest = by
				problem = fmt.Sprintf("the clock of %s may be up to %s ahead of that of %s, so the dates of pods do not show which ones "+
					"started with both CAs; look at the time servers (network.ntp)", nodes[i].Name, by.Round(time.Second), nodes[k].Name)
			}
		}
	}
	return problem
}

// Clock implements kubernetes. Each answer of an API server has its time, also one to a client that it does not accept.
func (c kubernetesClients) Clock(ctx context.Context, node turn.Node) (time.Time, error) {
	_, date, err := c.version(ctx, node, nil, c.all())
	if err != nil {
		return time.Time{}, err
	}
	return http.ParseTime(date)
}
