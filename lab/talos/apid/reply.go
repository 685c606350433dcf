package apid

import (
	"fmt"
	"slices"

	"github.com/siderolabs/talos/pkg/machinery/api/cluster"
	"github.com/siderolabs/talos/pkg/machinery/api/common"
	"github.com/siderolabs/talos/pkg/machinery/api/machine"
	"google.golang.org/grpc"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// streamed tells whether a method answers with a stream. An error in the form of the wrong kind of reply cannot be read by the client,
// which then takes the call for a success.
func streamed(method string) bool {
	return slices.ContainsFunc([]grpc.ServiceDesc{machine.MachineService_ServiceDesc, cluster.ClusterService_ServiceDesc}, func(service grpc.ServiceDesc) bool {
		return slices.ContainsFunc(service.Streams, func(s grpc.StreamDesc) bool {
			return method == "/"+service.ServiceName+"/"+s.StreamName
		})
	})
}

// AppendInfo adds the name of the node to a reply. Every unary reply is `repeated X messages = 1`. Every X, and every
// message of a stream, has `common.Metadata metadata = 1`. So the bytes can be appended without knowledge of X.
func (b backend) AppendInfo(streaming bool, reply []byte) ([]byte, error) {
	metadata, err := proto.Marshal(&common.Empty{Metadata: &common.Metadata{Hostname: b.target}})
	if err != nil {
		return nil, err
	}
	if streaming {
		return slices.Concat(reply, metadata), nil
	}
	num, typ, n := protowire.ConsumeTag(reply)
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	if num != 1 || typ != protowire.BytesType {
		return nil, fmt.Errorf("unexpected message format: field %d of type %d", num, typ)
	}
	inner, n := protowire.ConsumeBytes(reply[n:])
	if n < 0 {
		return nil, protowire.ParseError(n)
	}
	out := protowire.AppendTag(nil, 1, protowire.BytesType)
	return protowire.AppendBytes(out, slices.Concat(inner, metadata)), nil
}

// BuildError is the reply in place of that of a node which answered with an error.
func (b backend) BuildError(streaming bool, err error) ([]byte, error) {
	empty := &common.Empty{Metadata: &common.Metadata{Hostname: b.target, Error: err.Error(), Status: status.Convert(err).Proto()}}
	if streaming {
		return proto.Marshal(empty)
	}
	return proto.Marshal(&common.EmptyResponse{Messages: []*common.Empty{empty}})
}
