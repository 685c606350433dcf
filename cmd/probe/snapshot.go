package probe

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	clientconfig "github.com/siderolabs/talos/pkg/machinery/client/config"
	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/cmd/command"
	"github.com/slipway-platform/slipway/internal/clients/talosapi"
	"github.com/slipway-platform/slipway/internal/nodes/snapshot"
	"github.com/slipway-platform/slipway/internal/probe"
)

const snapshotDoes = `Takes a snapshot of etcd from a control plane, and checks that it is complete. A member of etcd without a leader or
without a vote gives none, because its data may be old. The file holds all Secrets of the cluster. Without --recipient it is not
encrypted. Beside it, FILE.sha256 is its checksum for sha256sum -c. The cluster is not changed.`

func defineSnapshot(c *cobra.Command) {
	c.Use, c.Long = c.Name()+" --talosconfig FILE [flags]", snapshotDoes
	flags := c.Flags()
	talosconfig := flags.String("talosconfig", "", "`file` with the Talos client configuration; required")
	node := flags.String("node", "", "`address` of the control plane to ask; without it, the endpoints of the talosconfig are asked in turn")
	to := flags.String("to", "", "`file` to write; without it, CLUSTER-TIME.db in the working directory")
	timeout := flags.Duration("timeout", 10*time.Minute, "longest wait")
	var recipients []string
	flags.Func("recipient", "age public `key` that the file is encrypted to; can be repeated", func(key string) error {
		recipients = append(recipients, key)
		_, err := snapshot.ParseRecipients([]string{key})
		return err
	})
	c.RunE = func(c *cobra.Command, _ []string) error {
		content, err := readFile("--talosconfig", *talosconfig)
		if err != nil {
			return err
		}
		config, err := clientconfig.FromString(content)
		if err != nil || config.Contexts[config.Context] == nil {
			return command.Wrong(errors.New("--talosconfig: is not a Talos client configuration with a current context"))
		}
		endpoints := config.Contexts[config.Context].Endpoints
		if *node != "" {
			endpoints = []string{*node}
		}
		if len(endpoints) == 0 {
			return command.Wrong(errors.New("--node: is missing, and the talosconfig has no endpoints; give the address of a control plane"))
		}
		path := *to
		if path == "" {
			path = snapshot.Name(config.Context, time.Now(), len(recipients) > 0)
		}
		ctx, cancel := probe.Within(c.Context(), *timeout)
		defer cancel()
		start := time.Now()
		file, err := takeSnapshot(ctx, c, config, endpoints, path, recipients)
		if err != nil {
			return err
		}
		fmt.Fprintf(c.ErrOrStderr(), "%s has a snapshot of %d bytes after %s\n", file.Path, file.Bytes, probe.Took(time.Since(start)))
		return json.NewEncoder(c.OutOrStdout()).Encode(file)
	}
}

// takeSnapshot asks the endpoints, one after the other, until one sends a snapshot.
func takeSnapshot(
	ctx context.Context, c *cobra.Command, config *clientconfig.Config, endpoints []string, path string, recipients []string,
) (snapshot.File, error) {
	var problems []string
	for _, endpoint := range endpoints {
		fmt.Fprintf(c.ErrOrStderr(), "asks %s for a snapshot\n", endpoint)
		file, err := snapshotFrom(ctx, config, endpoint, path, recipients)
		if err == nil {
			return file, nil
		}
		problems = append(problems, endpoint+": "+talosapi.Message(err).Error())
		if ctx.Err() != nil {
			break
		}
	}
	return snapshot.File{}, errors.New(strings.Join(problems, "; "))
}

func snapshotFrom(
	ctx context.Context, config *clientconfig.Config, endpoint, path string, recipients []string,
) (snapshot.File, error) {
	talos, err := talosapi.DialEndpoint(ctx, config, endpoint)
	if err != nil {
		return snapshot.File{}, err
	}
	defer talos.Close() // all is read by then
	return snapshot.Read(ctx, func(ctx context.Context) (io.ReadCloser, error) {
		asking, cancel := context.WithTimeout(ctx, talosapi.CallTimeout)
		defer cancel()
		if err := talosapi.Follows(asking, talos); err != nil {
			return nil, err
		}
		return talos.EtcdSnapshot(ctx, &machine.EtcdSnapshotRequest{})
	}, path, recipients)
}
