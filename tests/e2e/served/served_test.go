package served

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

var began = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)

// noted are samples, a second apart. Each is noted from the beginning.
func noted(samples ...string) string {
	var lines strings.Builder
	for i, sample := range samples {
		fmt.Fprintf(&lines, "%d %s\n", began.Add(time.Duration(i)*time.Second).UnixMilli(), sample)
	}
	return lines.String()
}

type given struct{ api, control, budget, nodes, statics, log, spans string }

func (g given) report(t *testing.T) Report {
	t.Helper()
	r, err := g.read()
	require.NoError(t, err)
	return r
}

func (g given) read() (Report, error) {
	return Of(Notes{
		API: strings.NewReader(g.api), Control: strings.NewReader(g.control), Budget: strings.NewReader(g.budget),
		Nodes: strings.NewReader(g.nodes), Statics: strings.NewReader(g.statics),
		Log: strings.NewReader(g.log), Spans: strings.NewReader(g.spans),
	}, began, began.Add(10*time.Second))
}

func TestOf_CountsAnswersAndTheLongestTimeWithoutOne(t *testing.T) {
	r := given{api: noted("200", "000", "000", "401", "200", "200", "200")}.report(t)
	assert.Equal(t, []int{7, 5}, []int{r.Asked, r.Answered}, "an API server that refuses is there")
	assert.Equal(t, 4*time.Second, r.Silence, "the last answer was four seconds before the end")
	r = given{api: noted("000", "000", "000", "000", "000", "000", "200", "200", "200")}.report(t)
	assert.Equal(t, 6*time.Second, r.Silence)
}

// every are samples that are this far apart.
func every(step time.Duration, samples ...string) string {
	var lines strings.Builder
	for i, sample := range samples {
		fmt.Fprintf(&lines, "%d %s\n", began.Add(time.Duration(i)*step).UnixMilli(), sample)
	}
	return lines.String()
}

func TestOf_TakesTheAPIForAwayOnlyWhileTheControlAnswers(t *testing.T) {
	answers := func(many int) string { return every(200*time.Millisecond, slices.Repeat([]string{"404"}, many)...) }
	always := answers(51)
	for name, one := range map[string]struct {
		api, control string
		gone         time.Duration
		starved      int
	}{
		"each request was answered, late":    {every(3*time.Second, "200", "200", "200", "200"), always, 0, 0},
		"three were not, the control was":    {noted("200", "000", "000", "000", "200", "000", "200"), always, 2800 * time.Millisecond, 0},
		"none until the end":                 {noted("200", "200", "000"), always, 7800 * time.Millisecond, 0},
		"neither was":                        {noted("200", "000", "000", "200"), noted("404", "000", "000", "404"), 0, 1},
		"the computer ran nothing meanwhile": {noted("200", "000", "000", "200"), every(4*time.Second, "404", "404", "404"), 0, 1},
		"the control paused at other times":  {noted("200", "000", "200"), answers(21), 800 * time.Millisecond, 0},
	} {
		r := given{api: one.api, control: one.control}.report(t)
		assert.Equal(t, one.gone, r.Gone, name)
		assert.Equal(t, one.starved, r.Starved, name)
	}
}

func TestOf_LeavesOutWhatWasNotedBeforeAndAfter(t *testing.T) {
	before := fmt.Sprintf("%d ", began.Add(-time.Second).UnixMilli())
	after := fmt.Sprintf("%d ", began.Add(time.Minute).UnixMilli())
	lost := "time=%s level=WARN msg=\"etcd has lost its quorum\" cluster=infra\n"
	r := given{
		api: before + "200\n" + after + "200\n", budget: before + "1 2\n", nodes: before + "a==False=v1.35.8\n",
		log: fmt.Sprintf(lost, "2026-01-02T03:04:04.999Z") + fmt.Sprintf(lost, "2026-01-02T03:05:04Z"),
	}.report(t)
	assert.Equal(t, Report{Took: 10 * time.Second, Pods: -1, Away: map[string]bool{}}, r)
}

func TestOf_CountsWhatABudgetLacks(t *testing.T) {
	r := given{budget: noted("3 2", "2 2", "1 2", "", "3 2")}.report(t)
	assert.Equal(t, []int{1, 1}, []int{r.BelowBudget, r.Pods})
}

func TestOf_CountsControlPlanesThatAreDownTogetherAndNotThoseThatJoin(t *testing.T) {
	r := given{nodes: noted(
		"i-cp-1==True=v1.35.7 i-cp-2==True=v1.35.7 i-cp-4==False=v1.35.7 i-cp-5==False=v1.35.7",
		"i-cp-1==True=v1.35.7 i-cp-2==Unknown=v1.35.7 i-cp-4==False=v1.35.7 i-worker-1=true=True=v1.35.7",
		"i-cp-1==False=v1.35.7 i-cp-2==Unknown=v1.35.7",
	)}.report(t)
	assert.Equal(t, []int{1, 3, 3}, []int{r.TwoDown, r.MostAway, r.Samples})
	assert.Equal(t, map[string]bool{"i-cp-1": true, "i-cp-2": true, "i-cp-4": true, "i-cp-5": true, "i-worker-1": true}, r.Away)
}

func TestOf_CountsPartsThatAreNewerThanAnAPIServer(t *testing.T) {
	statics := func(server1, server2, manager string) string {
		return fmt.Sprintf("kube-apiserver=k8s:5000/kube-apiserver:%s=True kube-apiserver=x:%s=True kube-controller-manager=x:%s=True",
			server1, server2, manager)
	}
	for _, one := range []struct {
		statics, nodes string
		skewed         int
	}{
		{statics("v1.35.8", "v1.35.8", "v1.35.8"), "a==True=v1.35.8", 0},
		{statics("v1.35.8", "v1.35.8", "v1.35.7"), "a==True=v1.35.7", 0},
		{statics("v1.35.8", "v1.35.7", "v1.35.7"), "a==True=v1.35.7", 0},
		{statics("v1.35.8", "v1.35.7", "v1.35.8"), "a==True=v1.35.7", 1},
		{statics("v1.35.10", "v1.35.9", "v1.35.9"), "a==True=v1.35.10", 1},
	} {
		r := given{statics: noted(one.statics), nodes: noted(one.nodes)}.report(t)
		assert.Equal(t, one.skewed, r.Skewed, "%s %s", one.statics, one.nodes)
	}
}

func TestOf_CountsAPIServersThatAreAwayTogether(t *testing.T) {
	sample := func(ready ...string) string {
		words := []string{"kube-scheduler=x:v1.36.4=False"}
		for _, one := range ready {
			words = append(words, "kube-apiserver=x:v1.36.4="+one)
		}
		return strings.Join(words, " ")
	}
	for want, samples := range [][]string{
		{sample("True", "True", "True")},
		{sample("True", "True", "True"), sample("True", "False", "True"), sample("True", "True", "True")},
		{sample("True", "True", "True"), sample("False", "True")},
	} {
		assert.Equal(t, want, given{statics: noted(samples...)}.report(t).ServersAway)
	}
}

func TestOf_CountsTimesWithoutQuorumAndStalledVolumes(t *testing.T) {
	r := given{log: `time=2026-01-02T03:04:05.999Z level=INFO msg="etcd has lost a member"
time=2026-01-02T03:04:07.123Z level=WARN msg="etcd has lost its quorum" cluster=infra
time=2026-01-02T03:04:08.123Z level=WARN msg="Ceph's volumes stall" fsid=1
time=2026-01-02T03:04:09.123Z level=INFO msg="Ceph's volumes answer again" fsid=1 after=1s
time=2026-01-02T03:04:10.123Z level=WARN msg="Ceph's volumes stall" fsid=1
`}.report(t)
	assert.Equal(t, []int{1, 2}, []int{r.WithoutQuorum, r.Stalled})
}

func TestOf_CountsTheTimesOfMachinesOnce(t *testing.T) {
	span := func(from, to int) string {
		return fmt.Sprintf("{\"what\":\"boot\",\"of\":\"a\",\"from\":%q,\"to\":%q}\n",
			began.Add(time.Duration(from)*time.Second).Format(time.RFC3339), began.Add(time.Duration(to)*time.Second).Format(time.RFC3339))
	}
	r := given{spans: span(5, 7) + span(-5, 2) + span(1, 3) + span(6, 7) + span(9, 20) + span(20, 30) + `{"what": "is being writ`}.report(t)
	assert.Equal(t, 6*time.Second, r.Machines)
}

func TestOf_RefusesWhatItCannotRead(t *testing.T) {
	for _, one := range []given{
		{api: "then 200\n"}, {nodes: noted("a=True")}, {statics: noted("kube-apiserver=latest")}, {budget: noted("many 2")},
	} {
		_, err := one.read()
		require.Error(t, err, "%+v", one)
	}
}
