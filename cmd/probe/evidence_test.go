package probe

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"

	"github.com/slipway-platform/slipway/internal/probe"
	"github.com/slipway-platform/slipway/tests/fakes/fakecluster"
)

func TestGate_ShowsTheLogAndTheEventsOfACrashingAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	fakecluster.PutAgent(t, r.kube, members[1], false)
	r.kube.Log("cilium-infra-worker-1", "starting\nlevel=fatal msg=\"daemon creation failed\" token=abc123\n-----BEGIN PRIVATE KEY-----\n")
	for i, reason := range []string{"BackOff", "FailedScheduling"} {
		r.kube.Put(t, fakecluster.Events,
			`{apiVersion: v1, kind: Event, metadata: {name: e`+reason+`, namespace: kube-system}, type: Warning, reason: `+reason+`,
  count: 7, message: "Back-off restarting failed container", lastTimestamp: "2026-01-01T00:00:0`+string(rune('0'+i))+`Z",
  involvedObject: {kind: Pod, name: `+[]string{"cilium-infra-worker-1", "another"}[i]+`, namespace: kube-system}}`)
	}
	_, report, _ := r.look(t)
	cause := problem(t, report, "infra-worker-1", "agent is Ready")
	assert.Contains(t, cause.Reason, "cilium-agent is in CrashLoopBackOff")
	evidence := strings.Join(cause.Evidence, "\n")
	assert.Equal(t, `container cilium-agent: waiting: CrashLoopBackOff: back-off 10s restarting failed container, 3 restarts
log of cilium-infra-worker-1/cilium-agent before it ended:
| starting
| level=fatal msg="daemon creation failed" token=(hidden)
| (hidden: a PEM block)
event BackOff, 7 times: Back-off restarting failed container`, evidence)
	assert.Equal(t, "kubectl --context fake -n kube-system logs cilium-infra-worker-1 -c cilium-agent --previous", cause.Command)
	for _, result := range report.Problems {
		assert.Equal(t, "infra-worker-1", result.Subject, "only one subject has a problem: %+v", result)
	}
}

func TestGate_AFlappingServerIsNotReadyAndIsCounted(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.spec.Timeout = probe.Duration(12 * time.Second) // on a busy machine, some seconds pass before the second flap
	r.kube.NotReady("etcd")
	stop := make(chan struct{})
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(700 * time.Millisecond)
		defer ticker.Stop()
		for failing := ""; ; {
			select {
			case <-ticker.C:
				r.kube.NotReady(failing)
				failing = map[string]string{"": "etcd", "etcd": ""}[failing]
			case <-stop:
				return
			}
		}
	}()
	r.spec.StableFor = probe.Duration(2 * time.Second) // longer than the server is ready at a time
	code, report, progress := r.probe(t)
	close(stop)
	<-done
	assert.Equal(t, exitUnhealthy, code, progress)
	assert.Regexp(t, `flapped \d+ times in \d+s`, strings.Join(report.Flaps, "\n"))
	assert.Regexp(t, `flaps\s+the API server is ready: flapped`, progress)
	assert.Contains(t, problem(t, report, "", "API server").Flapped, "flapped")
}
