// Package kube judges pods and their controllers for the checks of several packages.
package kube

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/health"
)

// Pod is a Kubernetes pod, as far as checks read it.
type Pod struct {
	Namespace, Name string
	Labels          map[string]string
	Node            string // "" while it is not scheduled
	Phase           string
	Ready           bool
	ReadySince      time.Time // when Ready last changed, in seconds; zero if that is unknown
	Lost            int       // number of transitions to not Ready that the watch saw
	Deleting        bool
	Unscheduled     string // the scheduler's message, while it is not scheduled
	Containers      []Container
}

// Container is one container of a pod, init containers included.
type Container struct {
	Name     string
	Image    string
	Init     bool
	Ready    bool
	State    string // running, "waiting: CrashLoopBackOff: back-off 5m0s …", "terminated: Error (exit code 1)"
	Last     string // the last termination, "" without one
	Restarts int
}

// Answering returns the pods in whose containers a command can be run: those that are Ready and stay.
func Answering(pods []Pod) []Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(p Pod) bool { return !p.Ready || p.Deleting })
}

// ReadyResult passes if the pod is Ready. Otherwise it names the container that prevents it, with evidence, command and questions.
func (p Pod) ReadyResult(subject string) health.Result {
	name := p.Namespace + "/" + p.Name
	result := health.Pass(subject)
	switch {
	case p.Deleting:
		result = health.Fail(subject, "pod "+name+" is being deleted")
	case p.Node == "":
		result = health.Fail(subject, "pod "+name+" is not scheduled")
		if p.Unscheduled != "" {
			result.Reason += ": " + p.Unscheduled
		}
	case !p.Ready:
		result = health.Fail(subject, "pod "+name+" is "+cmp.Or(p.Phase, "in no phase")+", not Ready")
	}
	result.Lost = p.Lost
	if result.Verdict == health.Passed {
		return result
	}
	result.Command = fmt.Sprintf("kubectl -n %s describe pod %s", p.Namespace, p.Name)
	for _, c := range p.Containers {
		if p.Ready || c.Ready || c.State == "" {
			continue
		}
		line := "container " + c.Name + ": " + c.State
		if c.Restarts > 0 {
			line += fmt.Sprintf(", %d restarts", c.Restarts)
			result.Command = fmt.Sprintf("kubectl -n %s logs %s -c %s --previous", p.Namespace, p.Name, c.Name)
		}
		if c.Last != "" {
			line += ", last: " + c.Last
		}
		result.Evidence = append(result.Evidence, line)
		if c.Restarts > 0 || c.Last != "" {
			result = result.Asks(health.Question{Kind: health.PodLog, Namespace: p.Namespace, Name: p.Name, Container: c.Name, Previous: true})
		} else if strings.HasPrefix(c.State, "running") {
			result = result.Asks(health.Question{Kind: health.PodLog, Namespace: p.Namespace, Name: p.Name, Container: c.Name})
		}
	}
	if why := p.waitingContainer(); why != "" {
		result.Reason += ": " + why
	}
	return result.Asks(p.Events())
}

// Events asks for the events about the pod.
func (p Pod) Events() health.Question {
	return health.Question{Kind: health.Events, Object: "Pod", Namespace: p.Namespace, Name: p.Name}
}

// waitingContainer names the first container that waits for another reason than the start of the containers before it.
func (p Pod) waitingContainer() string {
	for _, c := range p.Containers {
		why, waits := strings.CutPrefix(c.State, "waiting: ")
		why, _, _ = strings.Cut(why, ":")
		if !p.Ready && waits && why != "PodInitializing" && why != "ContainerCreating" {
			return c.Name + " is in " + why
		}
	}
	return ""
}

// Runs reports whether a container of the pod has an image of that version.
func (p Pod) Runs(version string) bool {
	return slices.ContainsFunc(p.Containers, func(c Container) bool { return !c.Init && IsOf(version, c.Image) })
}

// IsOf reports whether an image has that version as its tag. Registry and digest are not compared: they differ between installations.
func IsOf(version, image string) bool {
	image, _, _ = strings.Cut(image, "@")
	_, tag, tagged := strings.Cut(image[strings.LastIndex(image, "/")+1:], ":")
	return tagged && strings.TrimPrefix(tag, "v") == strings.TrimPrefix(version, "v")
}
