package talos

import (
	"context"
	"fmt"
	"reflect"
	"slices"

	"github.com/cosi-project/runtime/pkg/safe"
	"github.com/siderolabs/crypto/x509"
	"github.com/siderolabs/talos/pkg/machinery/resources/etcd"
	"github.com/siderolabs/talos/pkg/machinery/resources/k8s"
	"github.com/siderolabs/talos/pkg/machinery/resources/secrets"

	"github.com/slipway-platform/slipway/lab/talos/trustd"
)

// etcdProcess is a run of a member's program. It reads the CAs that it trusts when it starts, but its own certificates at each handshake.
type etcdProcess struct {
	trustd.Party

	peers map[*etcdProcess]bool // to which it is connected
}

// keepEtcdPKI publishes etcd's CA, and the certificates that the node issues from it, whenever the active configuration has another CA.
// Talos also issues new ones when the node's addresses or name change, which is not modelled.
func (b *boot) keepEtcdPKI() {
	var ca *x509.PEMEncodedCertificateAndKey
	for {
		err := b.site.waitUntil(b.ctx, func() bool {
			next := b.config.Cluster().Etcd().CA()
			changed := next != nil && !reflect.DeepEqual(ca, next)
			if changed {
				ca = next
			}
			return changed
		})
		if err != nil {
			return
		}
		root := secrets.NewEtcdRoot(secrets.EtcdRootID)
		root.TypedSpec().EtcdCA = ca
		b.res.Put(root)
		if b.site.waitUntil(b.ctx, b.hasTimeLocked) != nil {
			return
		}
		b.issueEtcd(ca)
		b.site.change.Notify()
	}
}

// issueEtcd issues the certificates of the node's etcd, and writes them and the CA to the files that its processes read. With a CA that
// does not work, the former certificates stay, and only the file of the CA is written; without former certificates nothing is.
func (b *boot) issueEtcd(ca *x509.PEMEncodedCertificateAndKey) {
	b.site.mu.Lock()
	addresses, name := addrsOf(b.accumulated), b.hostname
	b.site.mu.Unlock()
	trusts := trustd.Certificates(ca.Crt)
	certs, err := trustd.EtcdCertificates(ca, addresses, name)
	if err != nil {
		b.Printk("[talos] controller failed: secrets.EtcdController: error generating etcd client certs: %s", err)
	} else {
		b.res.Put(certs)
		written := etcd.NewPKIStatus(etcd.NamespaceName, etcd.PKIID)
		written.TypedSpec().Ready = true
		if now, err := safe.StateGet[*secrets.Etcd](b.ctx, b.res.State(), certs.Metadata()); err == nil {
			written.TypedSpec().Version = now.Metadata().Version().String()
		}
		b.res.Put(written)
	}
	b.site.mu.Lock()
	defer b.site.mu.Unlock()
	if err == nil {
		b.etcdFiles.Issuer = trusts[0]
	}
	if b.etcdFiles.Issuer == nil {
		return
	}
	b.etcdFiles.Trusts = trusts
	if own := b.inst.etcd; own != nil && own.runs() {
		own.process.Issuer = b.etcdFiles.Issuer
	}
	if b.cluster != nil {
		b.cluster.etcd.connect()
	}
}

// awaitEtcdPKI waits until etcd's certificates are written.
func (b *boot) awaitEtcdPKI(ctx context.Context) error {
	return b.site.waitUntil(ctx, func() bool { return b.etcdFiles.Issuer != nil })
}

// connect makes the connections of TLS that are missing and that both sides accept: between members, and from the API server of a node to
// its member. It is called whenever a program has started or certificates have changed. A connection stays until a program ends, whatever
// happens to certificates; real ones also break with the network. The caller holds the site's mutex.
func (e *etcdCluster) connect() {
	up := e.up()
	for i, b := range up {
		own := b.inst.etcd.process
		for _, o := range up[:i] {
			peer := o.inst.etcd.process
			if own.peers[peer] {
				continue
			}
			if refusal := own.Refusal(peer.Party); refusal != "" {
				b.rejected("peer", refusal)
				o.rejected("peer", peer.Refusal(own.Party))
				continue
			}
			own.peers[peer], peer.peers[own] = true, true
		}
		server := b.static[k8s.APIServerID]
		if server == nil || !server.up || server.etcd == own {
			continue
		}
		// An API server that reaches no etcd at its start ends, and starts with the files of then.
		client := trustd.Party{Trusts: server.trusts, Issuer: b.etcdFiles.Issuer}
		if server.etcd == nil {
			client.Trusts = b.etcdFiles.Trusts
		}
		if refusal := own.Refusal(client); refusal != "" {
			b.rejected("client", refusal)
			continue
		}
		server.etcd, server.trusts = own, client.Trusts
	}
}

// rejected writes to etcd's log that it gets no connection of a peer or client. etcd writes that again and again.
func (b *boot) rejected(from, refusal string) {
	b.Write("etcd", etcdLine("warn", "rejected connection on "+from+" endpoint", fmt.Sprintf(`"error":%q`, refusal)))
}

// answering are the running members that accept Talos's own client on this node, and that it accepts: of the whole cluster, or only the
// node's own. That client reads all files for each call. The caller holds the site's mutex.
func (b *boot) answering(local bool) []*member {
	var out []*member
	for _, o := range b.cluster.etcd.up() {
		own := o.inst.etcd
		if local && o != b {
			continue
		}
		if refusal := own.process.Refusal(b.etcdFiles); refusal != "" {
			o.rejected("client", refusal)
			continue
		}
		out = append(out, own)
	}
	return out
}

// reaches tells whether a member is connected to another one.
func (m *member) reaches(o *member) bool {
	return m == o || m.process != nil && m.process.peers[o.process]
}

// follows tells whether a member has a leader.
func (e *etcdCluster) follows(m *member) bool {
	leader := e.leads()
	return leader != nil && m.runs() && m.reaches(leader)
}

// cutOff tells whether a running member has no leader and another running member is not connected to it.
func (e *etcdCluster) cutOff(m *member) bool {
	return m != nil && m.runs() && !e.follows(m) &&
		slices.ContainsFunc(e.members, func(o *member) bool { return o.runs() && !m.reaches(o) })
}

// watchEtcd reports the health of etcd after its first check. It fails when certificates cut the member off, but not for a quorum that is
// lost because members do not run.
func (b *boot) watchEtcd(ctx context.Context, report func(problem string)) {
	for cut := false; ; {
		err := b.site.waitUntil(ctx, func() bool { return b.cluster.etcd.cutOff(b.inst.etcd) != cut })
		if err == nil {
			err = sleep(ctx, b.site.cfg.Latency.Service)
		}
		if err != nil {
			return
		}
		cut = !cut
		if cut {
			report("context deadline exceeded")
		} else {
			report("")
		}
	}
}
