package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os/signal"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	"go.etcd.io/etcd/server/v3/embed"
)

// etcdStartTimeout is how long a single etcd may take until it answers. It is alone, so it elects itself at once.
const etcdStartTimeout = 30 * time.Second

// etcdOptions are the flags of the etcd subcommand.
type etcdOptions struct {
	dir       string // data directory; created when missing
	name      string // member name
	clientURL string // URL for clients; plain http on a loopback address
	peerURL   string // URL for peers; plain http on a loopback address
}

func newEtcdCommand() *cobra.Command {
	o := &etcdOptions{}
	c := &cobra.Command{
		Use:           "etcd",
		Short:         "run a one-member etcd that keeps its data in --dir",
		Args:          cobra.NoArgs,
		SilenceUsage:  true,
		SilenceErrors: true,
		RunE: func(cmd *cobra.Command, _ []string) error {
			ctx, stop := signal.NotifyContext(cmd.Context(), syscall.SIGINT, syscall.SIGTERM)
			defer stop()
			return runEtcd(ctx, o)
		},
	}
	c.Flags().StringVar(&o.dir, "dir", "", "data directory")
	c.Flags().StringVar(&o.name, "name", "etcd", "member name")
	c.Flags().StringVar(&o.clientURL, "client-url", "http://127.0.0.1:2379", "URL to serve clients on, http and loopback only")
	c.Flags().StringVar(&o.peerURL, "peer-url", "http://127.0.0.1:2380", "URL to serve peers on, http and loopback only")
	return c
}

// config converts the flags to etcd's configuration, or returns all errors in them.
//
// Commits are not flushed to disk. That saves seconds; the data survives a restart of the lab, but not a power failure.
func (o *etcdOptions) config() (*embed.Config, error) {
	var errs []error
	if o.dir == "" {
		errs = append(errs, errors.New("--dir: empty; name the data directory"))
	}
	client, err := loopbackURL("--client-url", o.clientURL)
	errs = append(errs, err)
	peer, err := loopbackURL("--peer-url", o.peerURL)
	errs = append(errs, err)
	if err := errors.Join(errs...); err != nil {
		return nil, err
	}
	c := embed.NewConfig()
	c.Dir = o.dir
	c.Name = o.name
	c.ListenClientUrls, c.AdvertiseClientUrls = []url.URL{*client}, []url.URL{*client}
	c.ListenPeerUrls, c.AdvertisePeerUrls = []url.URL{*peer}, []url.URL{*peer}
	c.InitialCluster = c.InitialClusterFromName(o.name)
	c.LogLevel = "warn"
	c.UnsafeNoFsync = true
	c.AutoCompactionMode = embed.CompactorModePeriodic
	c.AutoCompactionRetention = "5m"
	return c, nil
}

// loopbackURL accepts only http on a loopback address, because etcd has neither TLS nor authentication here.
func loopbackURL(flag, s string) (*url.URL, error) {
	u, err := url.Parse(s)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", flag, err)
	}
	ip := net.ParseIP(u.Hostname())
	if u.Scheme != "http" || u.Port() == "" || ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s: %q is not http://LOOPBACK-ADDRESS:PORT; etcd has no authentication here", flag, s)
	}
	return u, nil
}

func runEtcd(ctx context.Context, o *etcdOptions) error {
	config, err := o.config()
	if err != nil {
		return err
	}
	e, err := embed.StartEtcd(config)
	if err != nil {
		return fmt.Errorf("etcd %q in %s: %w", o.name, o.dir, err)
	}
	defer e.Close()
	started := time.NewTimer(etcdStartTimeout)
	defer started.Stop()
	select {
	case <-e.Server.ReadyNotify():
		fmt.Println("etcd ready on", o.clientURL)
	case err := <-e.Err():
		return fmt.Errorf("etcd %q on %s: %w", o.name, o.clientURL, err)
	case <-started.C:
		return fmt.Errorf("etcd %q on %s: not ready after %s", o.name, o.clientURL, etcdStartTimeout)
	case <-ctx.Done():
		return nil
	}
	select {
	case err := <-e.Err():
		return fmt.Errorf("etcd %q on %s: %w", o.name, o.clientURL, err)
	case <-e.Server.StopNotify():
		return fmt.Errorf("etcd %q on %s: stopped by itself", o.name, o.clientURL)
	case <-ctx.Done():
		return nil
	}
}
