package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/namespace"
	"github.com/slipway-platform/slipway/lab/rehearsal"
	"github.com/slipway-platform/slipway/lab/session"
)

// run is `make lab`.
func (o *options) run() *cobra.Command {
	return &cobra.Command{
		Use: "run", Short: "Rehearse everything: up, up again, refresh, destroy, for every stack, in a lab of its own",
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			if !c.Flags().Changed("name") {
				o.name = "rehearsal-" + strconv.Itoa(os.Getpid())
			}
			start, out := time.Now(), c.OutOrStdout()
			s, err := o.startLab(c.Context(), out, true)
			if err != nil {
				return err
			}
			err = rehearsal.Run(c.Context(), s, out)
			if err != nil {
				fmt.Fprintf(out, "\nThe logs of the lab stay in %s.\n", s.Home.Logs())
			}
			if err := errors.Join(err, end(context.WithoutCancel(c.Context()), s)); err != nil {
				return err
			}
			fmt.Fprintf(out, "   no process, no namespace, no mount\n\nAll steps succeeded, in %.0f s.\n", time.Since(start).Seconds())
			return s.Home.Remove()
		},
	}
}

// startLab builds the missing tools and starts the named lab.
func (o *options) startLab(ctx context.Context, out io.Writer, dieWithParent bool) (*session.Session, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	checkout, err := o.checkout()
	if err != nil {
		return nil, err
	}
	built, err := build(ctx, checkout, out)
	if err != nil {
		return nil, err
	}
	at, err := o.home()
	if err != nil {
		return nil, err
	}
	h, settings, err := home.Open(at.Dir, checkout, o.talos)
	if err != nil {
		return nil, err
	}
	if settings.Checkout != checkout {
		return nil, fmt.Errorf("lab %s belongs to %s; clean it with --name %s clean, or choose another --name", h.Name(), settings.Checkout, h.Name())
	}
	if o.talos != "" && settings.Talos != o.talos {
		return nil, fmt.Errorf("lab %[1]s was created without --talos %[2]s; clean it with --name %[1]s clean, or choose another --name",
			h.Name(), o.talos)
	}
	if err := link(h, built); err != nil {
		return nil, err
	}
	daemon, err := o.daemon()
	if err != nil {
		return nil, err
	}
	return session.Start(ctx, h, settings, session.Options{Daemon: daemon, DieWithParent: dieWithParent})
}

// end stops a lab and checks that the kernel has removed everything of it.
func end(ctx context.Context, s *session.Session) error {
	left, err := namespace.Watch(s.PID())
	if err != nil {
		return err
	}
	return errors.Join(s.Stop(ctx), left(s.Home.Dir))
}
