// The errors of the SDK. Each error of the server becomes an object of the class for its code, with the server's code,
// its message, the request's id and a piece of advice: what to do next.

import type { ErrorCode, ExecResult } from './schema.js';

export interface ErrorDetails {
  code: string;
  status?: number;
  requestId?: string | null;
  /** Seconds after which the server suggests to try again. */
  retryAfter?: number | null;
  cause?: unknown;
}

/** The base class of all errors that the SDK throws. */
export class PaddockError extends Error {
  /** The server's code, from docs/errors.md; `connection` if there was no answer. */
  readonly code: string;
  /** The HTTP status; 0 if there was no answer. */
  readonly status: number;
  /** The id under which the server logged the request. */
  readonly requestId: string | null;
  readonly retryAfter: number | null;

  constructor(message: string, details: ErrorDetails) {
    super(message, details.cause === undefined ? undefined : { cause: details.cause });
    this.name = new.target.name;
    this.code = details.code;
    this.status = details.status ?? 0;
    this.requestId = details.requestId ?? null;
    this.retryAfter = details.retryAfter ?? null;
  }

  /** What to do next. The server's message already says what is wrong. */
  get advice(): string {
    const after = this.retryAfter ? ` Try again after ${this.retryAfter} s.` : '';
    return (ADVICE[this.code as keyof typeof ADVICE] ?? 'Read the message.') + after;
  }
}

/** There was no answer, or the answer broke off. */
export class ConnectionError extends PaddockError {
  /** Whether the server cannot have seen the request. */
  readonly unsent: boolean;

  constructor(message: string, cause?: unknown, unsent = false) {
    super(message, { code: 'connection', cause });
    this.unsent = unsent;
  }
}

/** No key, or a key that is not valid. */
export class AuthenticationError extends PaddockError {}
/** The key's role, or the user in the sandbox, may not do this. */
export class PermissionDeniedError extends PaddockError {}
/** There is no such sandbox, file, image or key (any more). */
export class NotFoundError extends PaddockError {}
/** The name is in use, or the text to replace is not there. */
export class ConflictError extends PaddockError {}
/** The sandbox, image or directory is in a state that does not allow this. */
export class WrongStateError extends PaddockError {}
/** The request is not valid. */
export class InvalidRequestError extends PaddockError {}
/** A quota is used up, or requests come too fast. */
export class QuotaError extends PaddockError {}
/** Something is too large, or the disk is full. */
export class TooLargeError extends PaddockError {}
/** This machine, or this server, cannot do it. */
export class NotSupportedError extends PaddockError {}
/** A part of the server or the sandbox cannot be reached at the moment. */
export class UnavailableError extends PaddockError {}
/** The sandbox did not answer in time. A command that runs out of time is no error: see `timed_out`. */
export class TimeoutError extends PaddockError {}
/** The program is not in the sandbox, or is not executable. */
export class CommandNotFoundError extends PaddockError {}
/** A bug in Paddock. */
export class InternalError extends PaddockError {}

/** A command that ended with another exit code than 0, where `check` was set. */
export class CommandFailedError extends PaddockError {
  readonly result: ExecResult;

  constructor(result: ExecResult) {
    const text = (result.stderr || result.stdout).trim().slice(-500);
    super(`the command ended with exit code ${result.exit_code}${text ? `: ${text}` : ''}`, { code: 'command_failed' });
    this.result = result;
  }
}

type Class = new (message: string, details: ErrorDetails) => PaddockError;

const CLASSES: { readonly [K in ErrorCode]: Class } = {
  invalid_argument: InvalidRequestError,
  bad_request: InvalidRequestError,
  unauthorized: AuthenticationError,
  forbidden: PermissionDeniedError,
  not_found: NotFoundError,
  method_not_allowed: InvalidRequestError,
  conflict: ConflictError,
  wrong_state: WrongStateError,
  gone: NotFoundError,
  length_required: InvalidRequestError,
  too_large: TooLargeError,
  uri_too_long: TooLargeError,
  unsupported_media: InvalidRequestError,
  range_not_satisfiable: InvalidRequestError,
  expectation_failed: InvalidRequestError,
  quota_exceeded: QuotaError,
  rate_limited: QuotaError,
  header_too_large: TooLargeError,
  cancelled: UnavailableError,
  internal: InternalError,
  not_supported: NotSupportedError,
  cannot_isolate: NotSupportedError,
  unavailable: UnavailableError,
  timeout: TimeoutError,
  http_version_not_supported: NotSupportedError,
  storage_full: TooLargeError,
  command_not_found: CommandNotFoundError,
  not_executable: CommandNotFoundError,
};

const ADVICE: { readonly [K in ErrorCode | 'connection' | 'command_failed']: string } = {
  invalid_argument: 'Correct the field or parameter that the message names.',
  bad_request: 'Correct the request.',
  unauthorized: 'Set PADDOCK_API_KEY or pass `apiKey`; `paddock key create` makes a key.',
  forbidden: 'Use a key with the role admin, or another user in the sandbox.',
  not_found: 'Check the name or the id; `paddock ls` lists the sandboxes of your tenant.',
  method_not_allowed: 'Use a server of the version that this SDK was made for.',
  conflict: 'Choose another name, or allow the existing one to be replaced.',
  wrong_state: 'Start or resume the sandbox, or remove what is in the way.',
  gone: 'Create it again.',
  length_required: 'Send a body of known length.',
  too_large: 'Send less at once; files have no limit in `files.write`.',
  uri_too_long: 'Use a shorter path or fewer parameters.',
  unsupported_media: 'Send the body as JSON.',
  range_not_satisfiable: 'Ask for a range within the file; `files.stat` has its size.',
  expectation_failed: 'Do not send the header Expect.',
  quota_exceeded: 'Delete what is not needed any more, or ask for a larger quota.',
  rate_limited: 'Send requests more slowly.',
  header_too_large: 'Send fewer or shorter headers.',
  cancelled: 'Repeat the request.',
  internal: 'Report it with the request id; the daemon\'s log has details.',
  not_supported: 'See `paddock doctor` for what this machine supports.',
  cannot_isolate: 'See `paddock doctor` for what this machine supports.',
  unavailable: 'Try again in a moment; `paddock doctor` shows what is wrong with a machine.',
  timeout: 'Try again, or look at what the sandbox is busy with.',
  http_version_not_supported: 'Use HTTP/1.1 or HTTP/2.',
  storage_full: 'Delete files, or give the sandbox a larger `disk_mb`.',
  command_not_found: 'Install the program in the sandbox, or use an image that has it.',
  not_executable: 'Make the file executable (`files.chmod`).',
  connection: 'Check PADDOCK_URL and whether the daemon runs (`paddock serve`).',
  command_failed: 'See `result` for the output of the command.',
};

/** The error for a code of the server. */
export function errorFor(message: string, details: ErrorDetails): PaddockError {
  const made = CLASSES[details.code as ErrorCode] ?? PaddockError;
  return new made(message, details);
}
