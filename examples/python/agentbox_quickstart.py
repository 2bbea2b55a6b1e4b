"""agentbox's quick start: the same calls in the same order. Only the import is Paddock's: grpcio and generated code are not needed.

    python3 agentbox_quickstart.py
"""

import os

from paddock.compat.agentbox import grpc, sandbox_pb2, sandbox_pb2_grpc

channel = grpc.insecure_channel(os.environ.get("PADDOCK_URL", "localhost:7080"))
stub = sandbox_pb2_grpc.SandboxServiceStub(channel)

made = stub.CreateSession(sandbox_pb2.CreateSessionRequest())
session_id = made.session.session_id

result = stub.Exec(sandbox_pb2.ExecRequest(session_id=session_id, command="python3 -c 'print(6 * 7)'", timeout=30))
print(result.exit_code, result.stdout, end="")

stub.WriteFile(sandbox_pb2.WriteFileRequest(session_id=session_id, path="note.py", content="print('written')", mode="w"))

installed = stub.PipInstall(sandbox_pb2.PipInstallRequest(session_id=session_id, packages=["pip"]))
print(installed.exit_code, installed.stdout, end="")

print(stub.DestroySession(sandbox_pb2.DestroySessionRequest(session_id=session_id)).success)
