package upgrade

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/slipway-platform/slipway/internal/nodes/versions"
)

// ciliumProblem returns why Cilium must not be changed from what runs to what is declared. Without an API server nothing is known, and
// nothing could be installed either: the run that brings the server back must not be stopped here.
func (j *job) ciliumProblem(ctx context.Context) error {
	if j.Cilium.Version == "" {
		return nil
	}
	asking, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	running, err := j.CiliumVersions(asking)
	if err != nil {
		j.Say("the Kubernetes API does not answer, so it is not known which Cilium runs: %v", err)
		return nil
	}
	if err := j.Cilium.Problem(running); err != nil {
		return err
	}
	var problems []error
	for _, demand := range j.Cilium.Demanded(running) {
		problem, err := j.failing(asking, demand)
		switch {
		case err != nil:
			return fmt.Errorf("cilium.version: it is not known whether %s fit Cilium %s: %w", demand.Resource.Resource, j.Cilium.Version, err)
		case problem != nil && demand.Warns:
			j.Say("%v", problem)
		case problem != nil:
			problems = append(problems, fmt.Errorf("cilium.version: %w", problem))
		}
	}
	return errors.Join(problems...)
}

// failing returns what is wrong with the objects that fail a demand; err if they cannot be listed.
func (j *job) failing(ctx context.Context, demand versions.Demand) (problem, err error) {
	objects, err := j.Objects(ctx, demand.Resource)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, object := range objects {
		if demand.Fails(object.Object) {
			names = append(names, strings.TrimPrefix(object.GetNamespace()+"/"+object.GetName(), "/"))
		}
	}
	return demand.Failed(names), nil
}
