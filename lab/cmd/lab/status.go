package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/lab/control"
	"github.com/slipway-platform/slipway/lab/session"
)

func (o *options) status() *cobra.Command {
	asJSON := false
	c := &cobra.Command{
		Use: "status", Short: "Show every simulated machine and real process, with its log file", Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := o.running()
			if err != nil {
				return err
			}
			status, err := s.Control.Status(c.Context())
			if err != nil {
				return err
			}
			if asJSON {
				encoder := json.NewEncoder(c.OutOrStdout())
				encoder.SetIndent("", "  ")
				return encoder.Encode(status)
			}
			return printStatus(c.OutOrStdout(), status)
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return c
}

// running returns the named lab, or an error if it is not running.
func (o *options) running() (*session.Session, error) {
	h, err := o.existing()
	if err != nil {
		return nil, err
	}
	return session.Attach(h)
}

func printStatus(w io.Writer, s control.Status) error {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintf(t, "SERVER\tURL\n")
	for _, e := range s.Endpoints {
		fmt.Fprintf(t, "%s\t%s\n", e.Name, e.URL)
	}
	fmt.Fprintf(t, "\nVM\tID\tHOST\tSTATUS\tTALOS\tCLUSTER\tADDRESSES\tLOG\n")
	for _, vm := range s.VMs {
		fmt.Fprintf(t, "%s\t%d\t%s\t%s\t%s\t%s\t%s\t%s\n", vm.Name, vm.ID, vm.Host, vm.Status, vm.Stage, vm.Cluster, strings.Join(vm.Addresses, " "), vm.Log)
		if vm.Reason != "" {
			fmt.Fprintf(t, "  %s\n", vm.Reason)
		}
	}
	fmt.Fprintf(t, "\nPROCESS\tCLUSTER\tNODE\tPID\tMEMORY\tLOG\n")
	for _, p := range s.Processes {
		fmt.Fprintf(t, "%s\t%s\t%s\t%d\t%d MiB\t%s\n", p.Name, p.Cluster, p.Node, p.PID, p.RSS>>20, p.Log)
	}
	fmt.Fprintf(t, "\nFAULT\tTARGET\tDETAIL\n")
	for _, f := range s.Faults {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Kind, f.Target, f.Detail)
	}
	fmt.Fprintf(t, "\nmemory of all processes: %d MiB, at most %d MiB so far\n", s.Memory>>20, s.PeakMemory>>20)
	return t.Flush()
}
