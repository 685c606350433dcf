package talos

import (
	"context"
	"net/netip"
	"reflect"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"github.com/siderolabs/talos/pkg/machinery/config"

	"github.com/slipway-platform/slipway/lab/talos/service"
	"github.com/slipway-platform/slipway/lab/talos/trustd"
)

// prepareAPI makes the node's identity and opens its API. Control planes sign their own certificates, workers wait for trustd of a control
// plane.
func (b *boot) prepareAPI(ctx context.Context, report service.Report) error {
	b.site.mu.Lock()
	addresses, signs := addrsOf(b.addresses), trustd.IssuingCA(b.config) != nil
	b.site.mu.Unlock()
	if len(addresses) == 0 || !signs {
		report(machine.ServiceStateEvent_WAITING, "Waiting for api certificates")
	}
	if len(addresses) == 0 {
		<-ctx.Done()
		return errOff
	}
	of, err := b.newIdentity(ctx, addresses)
	if err != nil {
		return err
	}
	b.wg.Go(func() { b.renewIdentity(of, addresses) })
	return b.serveAPI(addresses)
}

// newIdentity makes the identity as soon as somebody signs it. It returns the identity's configuration.
func (b *boot) newIdentity(ctx context.Context, addresses []netip.Addr) (of config.Provider, err error) {
	var signer config.Provider
	var name string
	err = b.site.waitUntil(ctx, func() bool {
		of, signer, name = b.config, b.signer(), b.hostname
		return signer != nil
	})
	if err != nil {
		return nil, err
	}
	identity, err := trustd.NewIdentity(of, signer, addresses, []string{name})
	if err != nil {
		return nil, err
	}
	b.site.mu.Lock()
	b.identity = identity
	b.site.mu.Unlock()
	b.site.change.Notify()
	return of, nil
}

// signer is the configuration of the control plane that signs for the node; nil if none does. The caller holds the site's mutex.
func (b *boot) signer() config.Provider {
	if trustd.IssuingCA(b.config) != nil {
		return b.config
	}
	for _, m := range b.site.machines {
		if o := m.boot; o != nil && o.config != nil && o.machined != nil && trustd.Signs(o.config, b.config) {
			return o.config
		}
	}
	return nil
}

// renewIdentity makes another identity whenever the node's configuration has other CAs or names, with the delay that a signature takes. Until
// then the former one stays. A worker does not notice that the CAs of control planes have changed.
func (b *boot) renewIdentity(of config.Provider, addresses []netip.Addr) {
	for {
		cas, sans := trustd.MachineCAs(of), trustd.SANs(of)
		err := b.site.waitUntil(b.ctx, func() bool {
			return !reflect.DeepEqual(cas, trustd.MachineCAs(b.config)) || !slices.Equal(sans, trustd.SANs(b.config))
		})
		if err == nil {
			err = sleep(b.ctx, b.site.cfg.Latency.Service)
		}
		if err != nil {
			return
		}
		next, err := b.newIdentity(b.ctx, addresses)
		switch {
		case b.ctx.Err() != nil:
			return
		case err != nil:
			b.Printk("[talos] controller failed: secrets.APIController: %s", err)
			b.site.mu.Lock()
			of = b.config // it tries again when the CAs change
			b.site.mu.Unlock()
		default:
			b.Printk("[talos] generated new certificates for the API")
			of = next
		}
	}
}
