package ceph

import (
	"bytes"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// provider is a cluster with three monitors and an image, whose OSDs can be stopped, by their hosts.
type provider struct {
	*Cluster
	log  bytes.Buffer
	stop map[string]func()
}

func (p *provider) startOn(t *testing.T, host string) {
	stop, err := p.StartOSD(p.CreateOSD(host, host), host)
	require.NoError(t, err)
	p.stop[host] = stop
}

func newProvider(t *testing.T, copies int, hosts ...string) *provider {
	p := &provider{stop: map[string]func(){}}
	w := &World{Dir: t.TempDir(), Recovery: 20 * time.Second, Log: slog.New(slog.NewTextHandler(&p.log, nil))}
	p.Cluster = w.Create(ParseVersion("v19.2.7"))
	for _, code := range keyWarnings {
		p.Mute(code, true)
	}
	p.SetMembers([]string{"a", "b", "c"})
	for _, name := range []string{"a", "b", "c"} {
		p.stop[name] = p.StartMonitor(name, name+address)
	}
	p.StartManager("a")
	p.SetDefaultCopies(copies)
	for _, host := range hosts {
		p.startOn(t, host)
	}
	p.SetPool("block", copies)
	key := p.SetUser(user, map[string]string{"mon": "profile rbd", "osd": "profile rbd pool=block"}, AES)
	s, err := w.Connect(t.Context(), []string{"a" + address}, user, key)
	require.NoError(t, err)
	_, _, err = s.CreateImage(t.Context(), "block", "pvc-1", "csi-vol-", 1<<30)
	require.NoError(t, err)
	health, checks := p.Health()
	require.Equal(t, "HEALTH_OK", health, checks)
	return p
}

// stalls are the lengths of the stalls that have ended, from the log.
func (p *provider) stalls() (all []string) {
	for _, match := range regexp.MustCompile(`answer again.* after=(\S+)`).FindAllStringSubmatch(p.log.String(), -1) {
		all = append(all, match[1])
	}
	return all
}

func TestOSD_ThatWasDownMissesCopiesUntilItHasRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, 2, "w1", "w2")
		p.stop["w1"]()
		time.Sleep(time.Minute)
		p.startOn(t, "w1")
		time.Sleep(19 * time.Second)
		_, checks := p.Health()
		assert.Equal(t, map[string]string{"PG_DEGRADED": "Degraded data redundancy: 32 pgs degraded"}, checks)
		time.Sleep(2 * time.Second)
		health, _ := p.Health()
		assert.Equal(t, "HEALTH_OK", health)
		assert.Empty(t, p.stalls())
	})
}

func TestImages_StallIfTheNextHostGoesBeforeTheFirstHasRecovered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, 2, "w1", "w2")
		p.stop["w1"]()
		p.startOn(t, "w1")
		p.stop["w2"]()
		assert.Contains(t, p.log.String(), `level=WARN msg="Ceph's volumes stall" fsid=`+p.FSID)
		_, checks := p.Health()
		assert.Contains(t, checks, "PG_AVAILABILITY", "the only running disk lacks what was written meanwhile")
		time.Sleep(time.Minute)
		assert.Empty(t, p.stalls(), "nobody who runs has it")
		p.startOn(t, "w2")
		assert.Equal(t, []string{"1m0s"}, p.stalls())
		time.Sleep(19 * time.Second)
		_, checks = p.Health()
		assert.Contains(t, checks, "PG_DEGRADED")
		time.Sleep(2 * time.Second)
		health, _ := p.Health()
		assert.Equal(t, "HEALTH_OK", health)
	})
}

func TestImages_StallWithoutEnoughHostsOrMonitors(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, 3, "w1", "w2", "w3")
		p.stop["w1"]()
		assert.NotContains(t, p.log.String(), "stall", "two of three copies are enough")
		p.stop["w2"]()
		time.Sleep(time.Second)
		p.startOn(t, "w2")
		assert.Equal(t, []string{"1s"}, p.stalls())
		p.stop["a"]()
		assert.Equal(t, 1, strings.Count(p.log.String(), "volumes stall"), "two of three monitors are a quorum")
		p.stop["b"]()
		time.Sleep(3 * time.Second)
		p.StartMonitor("b", "b"+address)
		assert.Equal(t, []string{"1s", "3s"}, p.stalls())
	})
}

func TestOSD_ThatStaysAwayIsNotMissedAfterTenMinutes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, 2, "w1", "w2", "w3")
		p.stop["w1"]()
		_, checks := p.Health()
		assert.Contains(t, checks, "PG_DEGRADED", "two hosts are enough for two copies, but Ceph waits for the third")
		assert.False(t, p.Clean())
		p.SetNoout("w1")
		time.Sleep(downOut)
		assert.False(t, p.Clean(), "it may come back")
		p.SetNoout("")
		health, _ := p.Health()
		assert.Equal(t, "HEALTH_OK", health)
		assert.True(t, p.Clean())
	})
}

func TestOSD_IsSafeToDestroyOnceOthersHaveItsCopies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, 2, "w1", "w2", "w3")
		require.ErrorIs(t, p.SafeToDestroy(0), ErrOSDUsed)
		require.NoError(t, p.Out(0))
		health, checks := p.Health()
		assert.Equal(t, "HEALTH_OK", health, "copies that are only in the wrong place are no warning: %v", checks)
		assert.False(t, p.Clean())
		require.ErrorIs(t, p.SafeToDestroy(0), ErrOSDUsed)
		time.Sleep(21 * time.Second)
		assert.True(t, p.Clean())
		require.NoError(t, p.SafeToDestroy(0))
		require.ErrorIs(t, p.Purge(0), ErrOSDUp)
		p.stop["w1"]()
		require.NoError(t, p.Purge(0))
		require.ErrorIs(t, p.Purge(0), ErrNoOSD)
		p.stop["w1"]() // a container's end that is noticed late
		require.ErrorIs(t, p.Purge(0), ErrNoOSD)
		assert.True(t, p.Clean())
		assert.Empty(t, p.stalls())
	})
}

func TestOSD_ThatIsOutAndDownIsMissedUntilOthersHaveMadeItsCopies(t *testing.T) {
	for _, outFirst := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			p := newProvider(t, 2, "w1", "w2", "w3")
			if outFirst {
				require.NoError(t, p.Out(0))
				time.Sleep(10 * time.Second)
			}
			p.stop["w1"]()
			require.NoError(t, p.Out(0))
			_, checks := p.Health()
			assert.Contains(t, checks, "PG_DEGRADED")
			require.ErrorIs(t, p.SafeToDestroy(0), ErrOSDUsed)
			time.Sleep(19 * time.Second)
			assert.False(t, p.Clean())
			time.Sleep(2 * time.Second)
			require.NoError(t, p.SafeToDestroy(0))
		})
	}
}

func TestOSD_OfADiskThatIsGoneIsNotStartedOnAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newProvider(t, 2, "w1", "w2")
		p.stop["w1"]()
		_, err := p.StartOSD(0, "another disk of w1")
		require.EqualError(t, err, "no disk found with OSD ID 0")
		require.NoError(t, p.Out(0))
		assert.ErrorIs(t, p.SafeToDestroy(0), ErrOSDUsed, "the only other copy is on w2")

		id := p.CreateOSD("w1", "another disk of w1")
		require.Equal(t, 2, id, "the former one has its number until it is purged")
		_, err = p.StartOSD(id, "another disk of w1")
		require.NoError(t, err)
		assert.ErrorIs(t, p.SafeToDestroy(0), ErrOSDUsed, "its copies are on their way")
		time.Sleep(21 * time.Second)
		require.NoError(t, p.SafeToDestroy(0))
		require.NoError(t, p.Purge(0))
		require.Equal(t, 0, p.CreateOSD("w3", "disk of w3"), "a free number is taken again")
	})
}

// Two machines with two disks each take two copies of a pool, and never a third one.
func TestManager_MakesItsPoolWithCephsNumberOfCopiesUnlessItIsThere(t *testing.T) {
	for _, declared := range []bool{true, false} {
		c := (&World{}).Create(ParseVersion("v19.2.7"))
		for _, code := range keyWarnings {
			c.Mute(code, true)
		}
		c.SetMembers([]string{"a"})
		c.StartMonitor("a", address)
		c.StartManager("a")
		if declared {
			c.SetDefaultCopies(2)
			c.SetPool(".mgr", 2)
		}
		c.SetPool("block", 2)
		for i, disk := range []string{"w1-a", "w1-b", "w2-a", "w2-b"} {
			_, checks := c.Health()
			assert.Equal(t, i < 2 || i < 3 && !declared, checks["TOO_FEW_OSDS"] != "", "%d OSDs, declared: %v", i, declared)
			_, err := c.StartOSD(c.CreateOSD(disk[:2], disk), disk)
			require.NoError(t, err)
		}
		health, checks := c.Health()
		if declared {
			assert.Equal(t, "HEALTH_OK", health, checks)
			continue
		}
		assert.Equal(t, map[string]string{"PG_DEGRADED": "Degraded data redundancy: 32 pgs undersized"}, checks)
		c.SetPool(".mgr", 2)
		health, checks = c.Health()
		assert.Equal(t, "HEALTH_OK", health, "its copies can be changed: %v", checks)
	}
}
