package observe

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/fields"

	"github.com/slipway-platform/slipway/cluster/secrecy"
	"github.com/slipway-platform/slipway/internal/clients/kubeapi"
	"github.com/slipway-platform/slipway/internal/health"
	"github.com/slipway-platform/slipway/internal/health/mesh"
)

const (
	logLines      = 5        // the last lines of a log
	newestEvents  = 3        // about an object
	maxLog        = 64 << 10 // bytes read of a log
	maxQuestions  = 24       // in all: if more checks fail, most fail for the same reason
	answersAtOnce = 6
)

// Answerer finds the answers to the questions of failed results.
type Answerer struct {
	kube  *Kube
	talos *Talos // nil if no result asks for a Talos service
}

// Answer adds answers to the evidence of failed results, until ctx ends. An answer that cannot be read is left out; of a log, the error is
// added.
func (a Answerer) Answer(ctx context.Context, results []health.Result) {
	var open []*question
	known := map[health.Question]*question{}
	for i := range results {
		if results[i].Verdict != health.Failed {
			continue
		}
		for _, ask := range results[i].Ask {
			q := known[ask]
			if q == nil {
				if len(open) == maxQuestions {
					continue
				}
				q = &question{ask: ask}
				known[ask] = q
				open = append(open, q)
			}
			q.results = append(q.results, i)
		}
	}
	limited(ctx, answersAtOnce, open, func(q *question) { q.answer = a.find(ctx, q.ask) })
	for _, q := range open {
		for _, i := range q.results {
			for _, line := range q.answer {
				// An event often repeats the message of the object's status.
				_, said, _ := strings.Cut(line, ": ")
				if !slices.Contains(results[i].Evidence, line) && (q.ask.Kind != health.Events || !strings.Contains(results[i].Reason, said)) {
					results[i].Evidence = append(results[i].Evidence, line)
				}
			}
		}
	}
}

type question struct {
	ask     health.Question
	results []int // indices of those that ask
	answer  []string
}

func (a Answerer) find(ctx context.Context, q health.Question) []string {
	switch q.Kind {
	case health.PodLog:
		title := fmt.Sprintf("log of %s/%s", q.Name, q.Container)
		if q.Previous {
			title += " before it ended"
		}
		text, err := a.kube.podLog(ctx, q)
		return quote(title, text, err)
	case health.ServiceLog:
		text, err := a.talos.serviceLog(ctx, q.Address, q.Name, logLines)
		return quote(fmt.Sprintf("log of %s on %s", q.Name, q.Node), text, err)
	case health.Events:
		return a.kube.warnings(ctx, q)
	case health.MeshFindings:
		return a.kube.meshFindings(ctx, q)
	}
	return nil
}

// quote returns the last lines of a log below a title.
func quote(title, text string, err error) []string {
	var lines []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			lines = append(lines, "| "+secrecy.Line(line))
		}
	}
	lines = lines[max(0, len(lines)-logLines):]
	switch {
	case len(lines) > 0:
		return append([]string{title + ":"}, lines...)
	case err != nil:
		return []string{title + " cannot be read: " + secrecy.Line(firstLine(err.Error()))}
	}
	return []string{title + ": empty"}
}

// meshFindings returns what is wrong in the connection to a peer.
func (k *Kube) meshFindings(ctx context.Context, q health.Question) []string {
	findings, err := k.troubleshoot(ctx, q.Namespace, q.Name, q.Container, q.Object)
	if err != nil {
		return nil
	}
	for i, finding := range findings {
		findings[i] = fmt.Sprintf("%s of %s: %s", q.Container, q.Name, finding)
	}
	return findings[:min(logLines, len(findings))]
}

// troubleshoot returns what Cilium's command for connections to a peer finds wrong, in an agent's pod or that of the mesh API server. The
// command connects as Cilium does, and changes nothing.
func (k *Kube) troubleshoot(ctx context.Context, namespace, pod, container, peer string) ([]string, error) {
	command := []string{"cilium-dbg", "troubleshoot", "clustermesh"}
	if container == mesh.CopyContainer {
		command = []string{"clustermesh-apiserver", "kvstoremesh-dbg", "troubleshoot"}
	}
	out, err := k.exec(ctx, namespace, pod, container, append(command, "--timeout", "3s", peer)...)
	if err != nil {
		return nil, err
	}
	var findings []string
	for line := range strings.Lines(string(out)) {
		if _, wrong, found := strings.Cut(line, "❌"); found {
			findings = append(findings, secrecy.Line(strings.TrimSpace(wrong)))
		}
	}
	return findings, nil
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(strings.TrimSpace(text), "\n")
	return line
}

func (k *Kube) podLog(ctx context.Context, q health.Question) (string, error) {
	query := url.Values{"container": {q.Container}, "tailLines": {strconv.Itoa(logLines)}, "previous": {strconv.FormatBool(q.Previous)}}
	response, err := k.Get(ctx, "/api/v1/namespaces/"+q.Namespace+"/pods/"+q.Name+"/log?"+query.Encode())
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, maxLog))
	if response.StatusCode != http.StatusOK {
		return "", fmt.Errorf("%s", response.Status)
	}
	return string(body), err
}

// warnings returns the newest Warning events about an object.
func (k *Kube) warnings(ctx context.Context, q health.Question) []string {
	selector := fields.Set{"type": corev1.EventTypeWarning, "involvedObject.kind": q.Object,
		"involvedObject.name": q.Name}.AsSelector().String()
	list, err := k.Objects.Resource(kubeapi.Events).Namespace(q.Namespace).List(ctx, metav1.ListOptions{FieldSelector: selector, Limit: 100})
	if err != nil {
		return nil
	}
	var events []corev1.Event
	for i := range list.Items {
		if event, err := kubeapi.Typed[corev1.Event](&list.Items[i]); err == nil {
			events = append(events, event)
		}
	}
	slices.SortStableFunc(events, func(a, b corev1.Event) int { return cmp.Compare(eventTime(b).UnixNano(), eventTime(a).UnixNano()) })
	var lines []string
	for _, event := range events[:min(len(events), newestEvents)] {
		times := ""
		if event.Count > 1 {
			times = fmt.Sprintf(", %d times", event.Count)
		}
		lines = append(lines, secrecy.Line(fmt.Sprintf("event %s%s: %s", event.Reason, times, firstLine(event.Message))))
	}
	return lines
}

func eventTime(event corev1.Event) time.Time {
	return cmp.Or(event.LastTimestamp.Time, event.EventTime.Time, event.CreationTimestamp.Time)
}
