package observe

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"

	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/gate"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

// watchNodes watches the nodes of a fake cluster. The function it returns waits until they are as wanted.
func watchNodes(t *testing.T, fake *fakecluster.Kube, kubeconfig string) (*Kube,
	func(what string, want func(health.Seen[gate.Node]) bool)) {
	t.Helper()
	kube, err := NewKube([]byte(kubeconfig), new(Calls))
	require.NoError(t, err)
	seen := make(chan health.Seen[gate.Node], 1000)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		watchAll(ctx, kube, kind{GroupVersionResource: kubeapi.Nodes}, kubeNode, func(s health.Seen[gate.Node]) { seen <- s })
	}()
	t.Cleanup(func() {
		stop()
		<-done
	})
	return kube, func(what string, want func(health.Seen[gate.Node]) bool) {
		t.Helper()
		deadline := time.After(10 * time.Second)
		var last health.Seen[gate.Node]
		for {
			select {
			case last = <-seen:
				if want(last) {
					return
				}
			case <-deadline:
				t.Fatalf("never seen: %s (last: %+v)", what, last)
			}
		}
	}
}

func names(seen health.Seen[gate.Node]) []string {
	var names []string
	for _, node := range seen.Items {
		names = append(names, node.Name)
	}
	return names
}

func TestWatch_PublishesEachChange(t *testing.T) {
	fake := fakecluster.NewKube(t)
	fakecluster.PutNode(t, fake, fakecluster.Member{Name: "b", Address: "10.25.11.12"}, "False")
	_, until := watchNodes(t, fake, fake.Config)
	until("the first list", func(s health.Seen[gate.Node]) bool { return slices.Equal(names(s), []string{"b"}) })
	fakecluster.PutNode(t, fake, fakecluster.Member{Name: "a", Address: "10.25.11.11"}, "True")
	until("a new node, in order", func(s health.Seen[gate.Node]) bool { return slices.Equal(names(s), []string{"a", "b"}) })
	fakecluster.PutNode(t, fake, fakecluster.Member{Name: "b", Address: "10.25.11.12"}, "True")
	until("a change", func(s health.Seen[gate.Node]) bool { return s.Items[len(s.Items)-1].Ready == "True" })
	fake.Delete(fakecluster.Nodes, "", "a")
	until("a node gone", func(s health.Seen[gate.Node]) bool { return slices.Equal(names(s), []string{"b"}) })
}

func TestWatch_KeepsTheLastItemsWhileTheServerIsAway(t *testing.T) {
	fake := fakecluster.NewKube(t)
	fakecluster.PutNode(t, fake, fakecluster.Member{Name: "a", Address: "10.25.11.11"}, "True")
	kube, until := watchNodes(t, fake, fake.Config)
	go kube.watchReadiness(t.Context(), nil)
	until("the first list", func(s health.Seen[gate.Node]) bool { return s.Synced && s.Err == nil })
	fake.GoAway()
	time.AfterFunc(time.Second, func() {
		fakecluster.PutNode(t, fake, fakecluster.Member{Name: "b", Address: "10.25.11.12"}, "True")
		fake.ComeBack()
	})
	until("the return, with what happened meanwhile", func(s health.Seen[gate.Node]) bool {
		return s.Err == nil && slices.Equal(names(s), []string{"a", "b"})
	})
}

func TestWatch_RefusedCredentialsAreHopelessAndAnUnknownKindIsNot(t *testing.T) {
	fake := fakecluster.NewKube(t)
	_, until := watchNodes(t, fake, fake.Config)
	until("an unknown kind", func(s health.Seen[gate.Node]) bool { return s.Err != nil && !s.Err.Hopeless })
	_, until = watchNodes(t, fake, fake.Kubeconfig(t, fakecluster.OtherAuthority(t), "fake-token"))
	until("an unknown authority", func(s health.Seen[gate.Node]) bool { return s.Err != nil && s.Err.Hopeless })
}

func TestAskReady_DistinguishesRefusalFailureAndSilence(t *testing.T) {
	fake := fakecluster.NewKube(t)
	ask := func(kubeconfig string) gate.APIServer {
		kube, err := NewKube([]byte(kubeconfig), new(Calls))
		require.NoError(t, err)
		return kube.askReady(t.Context())
	}
	assert.Equal(t, gate.APIServer{Asked: true, Ready: true}, ask(fake.Config))
	fake.NotReady("etcd")
	assert.Equal(t, gate.APIServer{Asked: true, Failing: []string{"etcd failed: reason withheld"}}, ask(fake.Config))
	refused := ask(fake.Kubeconfig(t, fake.Authority(), "another-token"))
	require.NotNil(t, refused.Err)
	assert.True(t, refused.Err.Hopeless)
	assert.NotContains(t, refused.Err.Reason, "another-token")
	fake.GoAway()
	gone := ask(fake.Config)
	require.NotNil(t, gone.Err)
	assert.False(t, gone.Err.Hopeless)
}
