package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/probe"
)

const storageUsage = `usage: slipway-probe storage --kubeconfig FILE [--spec FILE | --class … --driver … --node … ] [flags]
       slipway-probe storage <SPEC

Waits until the CSI drivers are registered on the nodes, and a volume of each StorageClass was bound, written, read and removed, and prints
what is missing. For the volume it creates a Job, and deletes it. If it is killed, Kubernetes deletes the Job and its volume by itself.

What is declared comes from --spec: the stack's output storageSpec, which holds no secret,
    pulumi stack output storageSpec --stack infra >storage.json
or from --class, --driver and --node. Without --kubeconfig the whole spec, credentials included, is read from standard input.

`

func runStorage(ctx context.Context, c call) error {
	spec := new(storage.Spec)
	flags := newWaitFlags(c, &spec.Target)
	declared := newStorageFlags(flags)
	if err := flags.read(spec, func(string) error { return declared.declare(spec) }); err != nil {
		return err
	}
	kube, err := flags.kube(spec.Kubeconfig)
	if err != nil {
		return err
	}
	spec.Once = flags.once
	report, end := flags.wait(ctx, observe.NewStorage(spec, kube), nil, map[string]string{
		"kubectl": toolFlags("--kubeconfig", flags.kubeconfig, kube.Context),
	})
	return flags.output.write(report, end, c)
}

// storageFlags are the flags that declare storage.
type storageFlags struct {
	spec    string
	attempt time.Duration
	given   storage.Spec
}

func newStorageFlags(flags *waitFlags) *storageFlags {
	s := new(storageFlags)
	add := func(to *[]string) func(string) error {
		return func(names string) error {
			*to = append(*to, strings.Split(names, ",")...)
			return nil
		}
	}
	flags.StringVar(&s.spec, "spec", "", "`file` with what is declared, as JSON: the stack's output storageSpec")
	flags.Func("class", "`name` of a StorageClass of which a volume is tried; once for each", add(&s.given.Classes))
	flags.Func("driver", "`name` of a CSI driver, beside those of the classes; once for each", add(&s.given.Drivers))
	flags.Func("node", "`name` of a node that must have the drivers; once for each. Without any, one node is enough", add(&s.given.Nodes))
	flags.StringVar(&s.given.Namespace, "namespace", "", "`namespace` in which the Job runs; kube-system if left out")
	flags.StringVar(&s.given.Image, "image", "", "`image` of the Job's pod, with sh; that of the Cilium agent if left out")
	flags.DurationVar(&s.attempt, "attempt", storage.DefaultAttempt, "longest time for one volume")
	flags.Usage = func() {
		fmt.Fprint(flags.Output(), storageUsage)
		flags.PrintDefaults()
	}
	return s
}

// declare sets what is declared.
func (s *storageFlags) declare(spec *storage.Spec) error {
	given := s.given
	if s.spec != "" {
		if len(given.Classes)+len(given.Drivers)+len(given.Nodes) > 0 {
			return usageError{errors.New("--spec: declares everything; leave out --class, --driver and --node")}
		}
		if err := decodeFile("--spec", s.spec, spec); err != nil {
			return err
		}
		if given.Namespace != "" {
			spec.Namespace = given.Namespace
		}
		if given.Image != "" {
			spec.Image = given.Image
		}
	} else {
		given.Target = spec.Target
		*spec = given
	}
	if spec.Attempt == 0 || s.attempt != storage.DefaultAttempt {
		spec.Attempt = probe.Duration(s.attempt)
	}
	return nil
}
