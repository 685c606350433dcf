package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
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
		Short: "Break something in the running lab, or mend it with --off; without arguments, list what is broken",
		Long:  "Break something in the running lab, or mend it with --off.\n\nKinds and what their target is (* for all):\n" + kinds(),
		Args:  cobra.MaximumNArgs(2),
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
	c.Flags().BoolVar(&off, "off", false, "mend it")
	c.Flags().BoolVar(&clear, "clear", false, "mend everything")
	c.Flags().DurationVar(&lasts, "for", 0, "mend it by itself after this time (default: never)")
	c.Flags().StringVar(&f.Detail, "detail", "", "how the error is worded")
	return c
}

func kinds() string {
	var b strings.Builder
	for _, kind := range slices.Sorted(maps.Keys(fault.Kinds)) {
		target := fault.Kinds[kind]
		if target == "" {
			target = "none"
		}
		fmt.Fprintf(&b, "  %-22s  %s\n", kind, target)
	}
	return b.String()
}

func printFaults(w io.Writer, all []fault.Fault) {
	if len(all) == 0 {
		fmt.Fprintln(w, "nothing is broken")
	}
	for _, f := range all {
		fmt.Fprintln(w, strings.TrimSpace(fmt.Sprintf("%s %s %s", f.Kind, f.Target, f.Detail)))
	}
}
