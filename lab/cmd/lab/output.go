package main

import (
	"fmt"
	"io"
	"regexp"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/lab/diagnostics"
)

// checkOutputCommand is hidden. The end-to-end tests use it: there is one list of known messages.
func checkOutputCommand() *cobra.Command {
	var expect []string
	c := &cobra.Command{
		Use: "check-output", Short: "Search the output of a successful Pulumi command on standard input for errors and warnings", Hidden: true,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			var expected []*regexp.Regexp
			for _, text := range expect {
				pattern, err := regexp.Compile(text)
				if err != nil {
					return err
				}
				expected = append(expected, pattern)
			}
			text, err := io.ReadAll(c.InOrStdin())
			if err != nil {
				return err
			}
			if found := diagnostics.Unexpected(string(text), expected...); len(found) > 0 {
				return fmt.Errorf("Pulumi succeeded, but its output has unexpected messages:\n%s", strings.Join(found, "\n"))
			}
			return nil
		},
	}
	c.Flags().StringArrayVar(&expect, "expect", nil, "`pattern` of a message that is expected here")
	return c
}
