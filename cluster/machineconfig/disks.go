package machineconfig

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	"github.com/google/cel-go/cel"
	"github.com/google/cel-go/common/types"
	"github.com/siderolabs/talos/pkg/machinery/api/resource/definitions/block"
	"github.com/siderolabs/talos/pkg/machinery/cel/celenv"

	"github.com/slipway-platform/slipway/cluster"
)

// checkVolume allows a further volume on a disk that the stack does not declare, and on none: a directory.
func checkVolume(c *comparison, _ []string, value any) refusal {
	if at(value, "volumeType") == "directory" {
		return refusal{}
	}
	expression, _ := at(at(at(value, "provisioning"), "diskSelector"), "match").(string)
	return c.checkSelector(celenv.DiskLocator(), expression)
}

// checkExistingVolume allows an existing volume on a disk that the stack does not declare.
func checkExistingVolume(c *comparison, _ []string, value any) refusal {
	expression, _ := at(at(at(value, "discovery"), "volumeSelector"), "match").(string)
	return c.checkSelector(celenv.VolumeLocator(), expression)
}

func (c *comparison) checkSelector(environment *cel.Env, expression string) refusal {
	for index := range len(c.node.DataDisks) + 1 {
		matches, err := guarded(func() (bool, error) { return mayMatch(environment, expression, index) })
		if err != nil || matches {
			return refusal{
				problem: "may select the system disk or a declared data disk",
				remedy: "declare the disk in nodePools[].dataDisks, or select another disk by what tells it from the VM's own, " +
					`such as disk.transport == "nvme" or its serial`,
			}
		}
	}
	return refusal{}
}

// mayMatch tells whether an expression can select the VM's SCSI disk of an index; the system disk is 0. Some properties of the disk
// are known before it is there. An expression that depends on another property may match.
func mayMatch(environment *cel.Env, expression string, index int) (bool, error) {
	ast, issues := environment.Compile(expression)
	if issues != nil && issues.Err() != nil {
		return true, issues.Err()
	}
	program, err := environment.Program(ast, cel.EvalOptions(cel.OptPartialEval))
	if err != nil {
		return true, err
	}
	unknown := unknownProperties
	if strings.Contains(byID.ReplaceAllString(expression, ""), "symlinks") {
		unknown = append(slices.Clone(unknown), cel.AttributePattern("disk").QualString("symlinks"))
	}
	for _, disk := range forms(index) {
		vars, err := cel.PartialVars(map[string]any{"disk": disk, "system_disk": index == 0}, unknown...)
		if err != nil {
			return true, err
		}
		result, _, err := program.Eval(vars)
		if err != nil || types.IsUnknown(result) || result == types.True {
			return true, nil //nolint:nilerr // an expression that fails for one form may match another
		}
	}
	return false, nil
}

// byID is the usual way to select a disk by its name below /dev/disk/by-id. All such names of a VM's disk are known; its other names
// are not.
var byID = regexp.MustCompile(`("/dev/disk/by-id/[^"]*"|'/dev/disk/by-id/[^']*') in disk\.symlinks`)

// forms returns all forms that the VM's disk of an index may have, as far as its properties are known. The kernel names disks in the
// order in which they answer: each may have any of the names.
func forms(index int) []*block.DiskSpec {
	var disks []*block.DiskSpec
	drive := fmt.Sprintf("drive-scsi%d", index)
	for letter := 'a'; letter <= 'z'; letter++ {
		for _, serial := range []string{"", drive} {
			for _, transport := range []string{"virtio", "scsi", "sas", "spi", ""} {
				disks = append(disks, &block.DiskSpec{
					DevPath: "/dev/sd" + string(letter), Model: "QEMU HARDDISK", Serial: serial, Transport: transport,
					Symlinks: []string{cluster.DiskPath(index), "/dev/disk/by-id/scsi-SQEMU_QEMU_HARDDISK_" + drive},
				})
			}
		}
	}
	return disks
}

// unknownProperties are the properties of a VM's disk that are not known before it is there.
var unknownProperties = func() []*cel.AttributePatternType {
	patterns := []*cel.AttributePatternType{cel.AttributePattern("volume")}
	for _, property := range []string{
		"size", "io_size", "sector_size", "readonly", "modalias", "wwid", "bus_path", "sub_system", "rotational", "pretty_size",
		"secondary_disks", "uuid",
	} {
		patterns = append(patterns, cel.AttributePattern("disk").QualString(property))
	}
	return patterns
}()
