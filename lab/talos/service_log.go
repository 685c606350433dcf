package talos

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/image"
	"github.com/slipway-platform/slipway/lab/talos/service"
	"github.com/slipway-platform/slipway/lab/talos/versions"
)

// logStart writes the first line of a service's process. The processes themselves are not modelled.
func (b *boot) logStart(id string) {
	b.site.mu.Lock()
	cfg, name, address := b.config, b.hostname, b.primaryLocked()
	b.site.mu.Unlock()
	switch id {
	case "machined": // its log is part of the kernel log
	case "etcd":
		b.Write(id, etcdLine("info", "Running: ", fmt.Sprintf(`"args":["/usr/local/bin/etcd",%s]`, etcdArgs(cfg, name))))
		b.Write(id, etcdLine("info", "starting an etcd server",
			fmt.Sprintf(`"etcd-version":%q,"name":%q,"advertise-client-urls":["https://%s:2379"]`, versions.Etcd(b.version), name, address)))
	case "kubelet":
		b.Write(id, klogLine('I', "server.go:530", fmt.Sprintf(`"Kubelet version" kubeletVersion=%q`,
			image.Tag(cfg.Machine().Kubelet().Image()))))
	default:
		b.Write(id, time.Now().UTC().Format("2006/01/02 15:04:05.000000 ")+"simulated "+id+" started")
	}
}

// etcdArgs are the arguments of etcd that the configuration gives, quoted, and its name.
func etcdArgs(cfg config.Provider, name string) string {
	args := []string{strconv.Quote("--name=" + name)}
	extra := cfg.Cluster().Etcd().ExtraArgs()
	for _, flag := range slices.Sorted(maps.Keys(extra)) {
		for _, value := range extra[flag] {
			args = append(args, strconv.Quote("--"+flag+"="+value))
		}
	}
	return strings.Join(args, ",")
}

// logFailure writes the error of a service that fails.
func (b *boot) logFailure(id, reason string) {
	for _, prefix := range []string{"Failed running service: ", "Failed to create runner: ", restarts} {
		reason = strings.TrimPrefix(reason, prefix)
	}
	switch id {
	case "etcd":
		b.Write(id, etcdLine("fatal", "discovery failed", fmt.Sprintf(`"error":%q`, reason)))
	case "kubelet":
		b.Write(id, klogLine('E', "run.go:72", fmt.Sprintf(`"command failed" err=%q`, "failed to run Kubelet: "+reason)))
	default:
		b.Write(id, time.Now().UTC().Format("2006/01/02 15:04:05.000000 ")+reason)
	}
}

// etcdLine is a line in etcd's log format.
func etcdLine(level, msg, fields string) string {
	if fields != "" {
		fields = "," + fields
	}
	return fmt.Sprintf(`{"level":%q,"ts":%q,"caller":"simulated","msg":%q%s}`, level, time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"),
		msg, fields)
}

// klogLine is a line in the kubelet's log format.
func klogLine(level byte, at, msg string) string {
	return fmt.Sprintf("%c%s    %d %s] %s", level, time.Now().UTC().Format("0102 15:04:05.000000"), service.PID("kubelet"), at, msg)
}
