package probe

import (
	"cmp"
	"context"
	"errors"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/health/storage"
	"github.com/slipway-platform/slipway/internal/observe"
	"github.com/slipway-platform/slipway/internal/probe"
)

const storageDoes = `Waits until the CSI drivers are registered on the nodes, and a volume of each StorageClass was bound, written, read and
removed, and prints what is missing. For the volume it creates a Job, and deletes it. If it is killed, Kubernetes deletes the Job and its
volume by itself.`

func defineStorage(c *cobra.Command) {
	spec := new(storage.Spec)
	flags := newWaitFlags(c, spec, &spec.Target)
	flags.takesSpec("[--spec FILE | --class … ] ", storageDoes, "or from --class. ")
	var classes []string
	flags.Func("class", "`name` of a StorageClass of which a volume is tried; once for each", func(names string) error {
		classes = append(classes, strings.Split(names, ",")...)
		return nil
	})
	image := flags.String("image", "", "`image` of the Job's pod, with sh; that of the Cilium agent if left out")
	attempt := flags.Duration("attempt", storage.DefaultAttempt, "longest time for one volume")
	flags.runs(func(context.Context) error {
		if flags.file != "" && len(classes) > 0 {
			return command.Wrong(errors.New("--spec: declares everything; leave out --class"))
		}
		spec.Classes, spec.Image = append(spec.Classes, classes...), cmp.Or(*image, spec.Image)
		if spec.Attempt == 0 || *attempt != storage.DefaultAttempt {
			spec.Attempt = probe.Duration(*attempt)
		}
		return nil
	}, func(ctx context.Context) error {
		spec.Once = flags.once
		return flags.wait(ctx, observe.NewStorage(spec, flags.kube), nil)
	})
}
