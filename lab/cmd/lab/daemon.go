package main

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/slipway-platform/slipway/lab/home"
	"github.com/slipway-platform/slipway/lab/latency"
	"github.com/slipway-platform/slipway/lab/namespace"
	"github.com/slipway-platform/slipway/lab/session"
	"github.com/slipway-platform/slipway/lab/world"
)

// Names of the commands with which the lab starts itself.
const (
	initName   = "init"
	daemonName = "daemon"
	probeName  = "probe-namespaces"
)

func probeCommand() *cobra.Command {
	return &cobra.Command{Use: probeName, Hidden: true, RunE: func(*cobra.Command, []string) error { return namespace.Probe() }}
}

// initCommand runs as pid 1 of the lab's namespaces.
func initCommand() *cobra.Command {
	return &cobra.Command{Use: initName, Hidden: true, DisableFlagParsing: true, RunE: func(_ *cobra.Command, args []string) error {
		lock, ready := session.Inherited()
		code, err := namespace.Init(args, lock, ready)
		if err != nil {
			return err
		}
		os.Exit(code)
		return nil
	}}
}

// daemonCommand runs the world.
func daemonCommand() *cobra.Command {
	factor := 1.0
	c := &cobra.Command{Use: daemonName + " FOLDER", Hidden: true, Args: cobra.ExactArgs(1), RunE: func(c *cobra.Command, args []string) error {
		lock, ready := session.Inherited()
		defer lock.Close()
		log := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelDebug}))
		err := serve(c.Context(), &home.Home{Dir: args[0]}, factor, log, func() { report(ready, "") })
		if err != nil {
			report(ready, err.Error())
		}
		return err
	}}
	c.Flags().Float64Var(&factor, "latency", factor, "")
	return c
}

// serve runs the world until ctx ends.
func serve(ctx context.Context, h *home.Home, factor float64, log *slog.Logger, ready func()) error {
	latencies, err := latency.Default().Scale(factor)
	if err != nil {
		return err
	}
	spans, err := os.OpenFile(h.Spans(), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("lab: %w", err)
	}
	defer spans.Close()
	latencies.Record = latency.NewRecorder(spans)
	tools, err := world.ReadTools(h)
	if err != nil {
		return err
	}
	w, err := world.Start(ctx, world.Options{Home: h, Tools: tools, Latency: latencies, Log: log})
	if err != nil {
		return err
	}
	log.Info("ready")
	ready()
	<-ctx.Done()
	log.Info("ending")
	return w.Close()
}

// report sends one line to the process that started the lab. An error is ignored, because that process may have ended.
func report(ready *os.File, line string) {
	_, _ = fmt.Fprintln(ready, strings.ReplaceAll(line, "\n", "; "))
	_ = ready.Close()
}
