package main

import (
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
			s, err := o.attach(c)
			if err != nil {
				return err
			}
			_, err = s.Prepare(c.Context())
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
			fmt.Fprintf(c.ErrOrStderr(), "You are in lab %q. Try: pulumi up -s infra, kubectl get nodes, talosctl services. `make lab-clean` ends it.\n", o.name)
			return o.enter(c, shell)
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
	s, err := o.attach(c)
	if err != nil {
		return err
	}
	if _, err := s.Prepare(c.Context()); err != nil {
		return err
	}
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
