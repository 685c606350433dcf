package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/lab/session"
)

// attach returns the named lab. It starts the lab if it is not running.
func (o *options) attach(c *cobra.Command) (*session.Session, error) {
	h, err := o.home()
	if err != nil {
		return nil, err
	}
	running, err := h.Running()
	if err != nil {
		return nil, err
	}
	if running {
		return session.Attach(h)
	}
	return o.startLab(c.Context(), c.ErrOrStderr(), false)
}

func (o *options) start() *cobra.Command {
	return &cobra.Command{
		Use: "start", Short: "Start the lab and leave it running", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			_, err := o.prepared(c)
			return err
		},
	}
}

func (o *options) shell() *cobra.Command {
	return &cobra.Command{
		Use: "shell", Short: "Open a shell in the lab, started first if need be; the lab stays when you leave", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			shell := os.Getenv("SHELL")
			if _, err := exec.LookPath(shell); shell == "" || err != nil {
				shell = "/bin/sh"
			}
			s, err := o.prepared(c)
			if err != nil {
				return err
			}
			fmt.Fprintf(c.ErrOrStderr(), "You are in lab %q. Try: pulumi up -s infra, kubectl get nodes, talosctl services. `make lab-clean` ends it.\n"+
				"Edit the stack files in %s, with any editor outside of this shell: Pulumi sees each change at once.\n",
				s.Home.Name(), s.Settings.Checkout)
			ctx, stop := context.WithCancel(c.Context())
			followed := make(chan error, 1)
			go func() { followed <- s.Follow(ctx, c.ErrOrStderr()) }()
			err = run(s, shell)
			stop()
			if problem := <-followed; problem != nil {
				fmt.Fprintln(c.ErrOrStderr(), "lab:", problem)
			}
			return err
		},
	}
}

func (o *options) exec() *cobra.Command {
	return &cobra.Command{
		Use: "exec -- COMMAND…", Short: "Run one command in the lab, started first if need be", Args: cobra.MinimumNArgs(1),
		RunE: func(c *cobra.Command, args []string) error { return o.enter(c, args...) },
	}
}

func (o *options) enter(c *cobra.Command, argv ...string) error {
	s, err := o.prepared(c)
	if err != nil {
		return err
	}
	return run(s, argv...)
}

// prepared returns the named lab with its stacks prepared.
func (o *options) prepared(c *cobra.Command) (*session.Session, error) {
	s, err := o.attach(c)
	if err != nil {
		return nil, err
	}
	_, err = s.Prepare(c.Context(), c.ErrOrStderr())
	return s, err
}

// run runs a command in the lab with this process's terminal.
func run(s *session.Session, argv ...string) error {
	command := s.Interactive(argv...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	return command.Run()
}

func (o *options) clean() *cobra.Command {
	return &cobra.Command{
		Use: "clean", Short: "End the lab and remove its folder", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			h, err := o.home()
			if err != nil {
				return err
			}
			running, err := h.Running()
			if err != nil {
				return err
			}
			if running {
				s, err := session.Attach(h)
				if err != nil {
					return err
				}
				err = end(c.Context(), s)
				if err != nil {
					return errors.Join(err, errors.New("nothing removed"))
				}
			}
			return h.Remove()
		},
	}
}
