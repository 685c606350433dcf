package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/lab/fault"
)

func (o *options) fault() *cobra.Command {
	f := fault.Fault{}
	off, clear, lasts := false, false, time.Duration(0)
	c := &cobra.Command{
		Use:   "fault [KIND [TARGET]]",
		Short: "Switch a fault of the running lab on, or off with --off; without arguments, list the faults that are on",
		Long: "Switch a fault of the running lab on, or off with --off. docs/lab.md says what each does.\n\n" +
			"Kinds and what their target is (* for all):\n" + kinds(),
		Args: cobra.MaximumNArgs(2),
		RunE: func(c *cobra.Command, args []string) error {
			s, err := o.running()
			if err != nil {
				return err
			}
			if len(args) > 0 {
				f.Kind = fault.Kind(args[0])
			}
			if len(args) > 1 {
				f.Target = args[1]
			}
			if lasts > 0 {
				f.Until = time.Now().Add(lasts)
			}
			var all []fault.Fault
			switch {
			case clear:
				all, err = s.Control.FaultOff(c.Context(), "", "")
			case len(args) == 0:
				status, statusErr := s.Control.Status(c.Context())
				all, err = status.Faults, statusErr
			case off:
				all, err = s.Control.FaultOff(c.Context(), f.Kind, f.Target)
			default:
				all, err = s.Control.FaultOn(c.Context(), f)
			}
			if err != nil {
				return err
			}
			printFaults(c.OutOrStdout(), all)
			return nil
		},
	}
	c.Flags().BoolVar(&off, "off", false, "switch the fault off")
	c.Flags().BoolVar(&clear, "clear", false, "switch every fault off")
	c.Flags().DurationVar(&lasts, "for", 0, "switch the fault off after this time (default: never)")
	c.Flags().StringVar(&f.Detail, "detail", "", "text of the error, or another value; depends on the kind")
	return c
}

func kinds() string {
	var b strings.Builder
	for _, d := range fault.Kinds {
		fmt.Fprintf(&b, "  %-22s  %s\n", d.Kind, cmp.Or(d.Target, "none"))
	}
	return b.String()
}

func printFaults(w io.Writer, all []fault.Fault) {
	if len(all) == 0 {
		fmt.Fprintln(w, "no fault is on")
	}
	for _, f := range all {
		fmt.Fprintln(w, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Kind, f.Target, f.Detail)))
	}
}
