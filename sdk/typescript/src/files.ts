// Files of a sandbox, and of a workspace without a sandbox.

import type { CallOptions, Core } from './core.js';
import { ConnectionError, NotFoundError } from './errors.js';
import { joined } from './frames.js';
import type {
  File, FileChmod, FileCopy, FileEvent, FileFind, FileFound, FileGrep, FileList, FileMatches, FileMkdir, FileMove, FileNews, FileReplace,
  FileSign, FileSum, FileType, WatcherCreate,
} from './schema.js';
import { sentEventsOf, SSE } from './stream.js';
import type { Answer, BodySource } from './transport.js';

const OCTETS = 'application/octet-stream';

export interface UserOption extends CallOptions {
  /** Whose rights: a user of the sandbox. */
  user?: string;
}
export interface ReadOptions extends UserOption {
  /** The first byte wanted. */
  start?: number;
  /** The first byte that is not wanted any more. */
  end?: number;
}
export interface WriteOptions extends UserOption {
  /** Permissions, octal. */
  mode?: string;
}
export interface ListOptions extends UserOption {
  /** More than 1 also lists directories in the directory. */
  depth?: number;
}
export interface PageOptions extends ListOptions {
  limit: number;
  cursor?: string;
}
/** What HEAD tells of a file. */
export interface FileHead {
  size: number | null;
  modified: string | null;
  mode: string | null;
  type: FileType | null;
}
export interface SignedUrl {
  url: string;
  expires_at: string;
}

function rangeOf({ start, end }: ReadOptions): Record<string, string> {
  return start === undefined && end === undefined ? {} : { range: `bytes=${start ?? 0}-${end === undefined ? '' : end - 1}` };
}

async function headOf(answer: Answer): Promise<FileHead> {
  const size = answer.header('content-length');
  await answer.text(); // There is none; the connection is free again.
  return {
    size: size === null ? null : Number(size), modified: answer.header('last-modified'),
    mode: answer.header('x-file-mode'), type: answer.header('x-file-type') as FileType | null,
  };
}

interface Names {
  read: 'readFile' | 'readWorkspaceFile';
  stat: 'statFile' | 'statWorkspaceFile';
  write: 'writeFile' | 'writeWorkspaceFile';
  remove: 'removeFile' | 'removeWorkspaceFile';
}

/** What the files of sandboxes and of workspaces have in common. */
abstract class Tree {
  protected constructor(protected readonly core: Core, private readonly names: Names) {}
  protected abstract place(path: string): { id: string; name: string; path: string };

  private open(path: string, options: ReadOptions, query: object = {}): Promise<Answer> {
    const { signal, user } = options;
    return this.core.body(this.names.read, { path: this.place(path), query: { user, ...query }, headers: rangeOf(options), signal });
  }
  /** The text of a file. */
  async read(path: string, options: ReadOptions = {}): Promise<string> {
    return await (await this.open(path, options)).text();
  }
  async readBytes(path: string, options: ReadOptions = {}): Promise<Uint8Array> {
    return await (await this.open(path, options)).bytes();
  }
  /** The bytes of a file as they arrive. */
  async *readStream(path: string, options: ReadOptions = {}): AsyncGenerator<Uint8Array, void> {
    yield* (await this.open(path, options)).chunks();
  }
  /** A file, or the contents of a directory, as a tar archive. */
  async *readArchive(path: string, options: UserOption = {}): AsyncGenerator<Uint8Array, void> {
    yield* (await this.open(path, options, { archive: 'tar' })).chunks();
  }
  /** The size, the mode and the type of a file. */
  async head(path: string, options: UserOption = {}): Promise<FileHead> {
    const { signal, ...query } = options;
    return await headOf(await this.core.body(this.names.stat, { path: this.place(path), query, signal }));
  }
  /** Whether there is something at a path that the user can see. */
  async exists(path: string, options: UserOption = {}): Promise<boolean> {
    try {
      await this.head(path, options);
      return true;
    } catch (e) {
      if (e instanceof NotFoundError) return false;
      throw e;
    }
  }
  /** Writes a file, atomically; missing directories are created. */
  async write(path: string, data: BodySource, options: WriteOptions = {}): Promise<File> {
    return (await this.put(path, data, OCTETS, options, true)) as File;
  }
  /** Appends to a file. */
  async append(path: string, data: BodySource, options: WriteOptions = {}): Promise<File> {
    return (await this.put(path, data, OCTETS, { ...options, append: true }, false)) as File;
  }
  /** Unpacks a tar archive into a directory. */
  async writeArchive(path: string, archive: BodySource, options: UserOption = {}): Promise<FileSum> {
    return (await this.put(path, archive, 'application/x-tar', { ...options, archive: 'tar' }, true)) as FileSum;
  }
  private put(path: string, raw: BodySource, type: string, options: WriteOptions & { append?: boolean; archive?: 'tar' }, repeatable: boolean): Promise<File | FileSum> {
    const { signal, ...query } = options;
    return this.core.call(this.names.write, { path: this.place(path), query, raw, type, repeatable, signal });
  }
  /** The entries of a directory. */
  async list(path: string, options: ListOptions = {}): Promise<File[]> {
    return (await this.listing(path, options)).entries;
  }
  /** A page of the entries, in the order of their paths. */
  listPage(path: string, options: PageOptions): Promise<FileList> {
    return this.listing(path, options);
  }
  private async listing(path: string, options: ListOptions | PageOptions): Promise<FileList> {
    const { signal, ...query } = options;
    return (await this.core.call(this.names.read, { path: this.place(path), query: { ...query, list: true } as object, signal })) as FileList;
  }
  /** Deletes a file or directory. */
  remove(path: string, options: { recursive?: boolean } & UserOption = {}): Promise<void> {
    const { signal, ...query } = options;
    return this.core.call(this.names.remove, { path: this.place(path), query, signal });
  }
}

/** The files of a workspace, without a sandbox. Paths are relative to it. */
export class WorkspaceFiles extends Tree {
  constructor(core: Core, private readonly workspace: string) {
    super(core, { read: 'readWorkspaceFile', stat: 'statWorkspaceFile', write: 'writeWorkspaceFile', remove: 'removeWorkspaceFile' });
  }
  protected place(path: string) {
    return { id: '', name: this.workspace, path };
  }
}

/** A watcher that collects changes until it is asked. */
export class Watcher {
  constructor(private readonly core: Core, private readonly box: string, readonly id: string) {}
  /** The changes since the last time. */
  poll(options: CallOptions = {}): Promise<FileNews> {
    return this.core.call('pollWatcher', { path: { id: this.box, watcher: this.id }, ...options });
  }
  remove(options: CallOptions = {}): Promise<void> {
    return this.core.call('removeWatcher', { path: { id: this.box, watcher: this.id }, ...options });
  }
}

/** The files of a sandbox. Paths are absolute, or relative to its working directory. */
export class Files extends Tree {
  constructor(core: Core, private readonly id: string, private readonly workdir: () => string) {
    super(core, { read: 'readFile', stat: 'statFile', write: 'writeFile', remove: 'removeFile' });
  }
  private whole(path: string): string {
    return path.startsWith('/') ? path : `${this.workdir()}/${path}`;
  }
  protected place(path: string) {
    return { id: this.id, name: '', path: this.whole(path) };
  }
  private split<T extends CallOptions>({ signal, ...json }: T): { path: { id: string }; json: Omit<T, 'signal'>; signal: AbortSignal | undefined } {
    return { path: { id: this.id }, json, signal };
  }
  /** Uploads several files into a directory: names, which may contain directories, with their contents. */
  async upload(path: string, files: Record<string, string | Uint8Array | Blob>, options: UserOption = {}): Promise<File[]> {
    const boundary = `paddock-${Math.random().toString(36).slice(2)}${Date.now().toString(36)}`, parts: Uint8Array[] = [];
    const text = (t: string) => parts.push(new TextEncoder().encode(t));
    for (const [name, data] of Object.entries(files)) {
      const safe = name.replace(/["\r\n]/g, (c) => `%${c.charCodeAt(0).toString(16).padStart(2, '0').toUpperCase()}`);
      text(`--${boundary}\r\nContent-Disposition: form-data; name="file"; filename="${safe}"\r\nContent-Type: ${OCTETS}\r\n\r\n`);
      if (typeof data === 'string') text(data);
      else parts.push(data instanceof Uint8Array ? data : new Uint8Array(await data.arrayBuffer()));
      text('\r\n');
    }
    text(`--${boundary}--\r\n`);
    const { signal, ...query } = options;
    const raw = joined(parts), type = `multipart/form-data; boundary=${boundary}`;
    return (await this.core.call('uploadFiles', { path: { id: this.id, path: this.whole(path) }, query: query as object, raw, type, signal })).files;
  }
  /** What is at a path. A symlink is reported as a symlink. */
  stat(path: string, options: UserOption = {}): Promise<File> {
    const { signal, ...query } = options;
    return this.core.call('statPath', { path: { id: this.id }, query: { path: this.whole(path), ...query }, signal });
  }
  /** Moves or renames; `copied` if it had to be copied to another mount. */
  move(from: string, to: string, options: Omit<FileMove, 'from' | 'to'> & CallOptions = {}): Promise<{ copied: boolean }> {
    return this.core.call('moveFile', this.split({ from: this.whole(from), to: this.whole(to), ...options }));
  }
  copy(from: string, to: string, options: Omit<FileCopy, 'from' | 'to'> & CallOptions = {}): Promise<FileSum> {
    return this.core.call('copyFile', this.split({ from: this.whole(from), to: this.whole(to), ...options }));
  }
  mkdir(path: string, options: Omit<FileMkdir, 'path'> & CallOptions = {}): Promise<void> {
    return this.core.call('makeDirectory', this.split({ path: this.whole(path), ...options }));
  }
  /** Changes mode or owner; returns how many files were changed. */
  async chmod(path: string, options: Omit<FileChmod, 'path'> & CallOptions): Promise<number> {
    return (await this.core.call('changeMode', this.split({ path: this.whole(path), ...options }))).changed;
  }
  /** Finds files by name. */
  find(path: string, pattern: string, options: Omit<FileFind, 'path' | 'pattern'> & CallOptions = {}): Promise<FileFound> {
    return this.core.call('findFiles', this.split({ path: this.whole(path), pattern, ...options }));
  }
  /** Searches text in files. */
  grep(path: string, pattern: string, options: Omit<FileGrep, 'path' | 'pattern'> & CallOptions = {}): Promise<FileMatches> {
    return this.core.call('grepFiles', this.split({ path: this.whole(path), pattern, ...options }));
  }
  /** Replaces text in a file; a ConflictError if it is not there. */
  replace(path: string, old: string, text: string, options: Pick<FileReplace, 'user' | 'count'> & CallOptions = {}): Promise<{ replaced: number; file: File }> {
    return this.core.call('replaceInFile', this.split({ path: this.whole(path), old, new: text, ...options }));
  }
  /** Makes a URL that needs no key, for one path, one method and a time. */
  async sign(path: string, options: { method?: FileSign['method']; expires_seconds?: number; user?: string } & CallOptions = {}): Promise<SignedUrl> {
    const { method = 'GET', expires_seconds = 3600, ...rest } = options;
    const { url, expires_at } = await this.core.call('signUrl', this.split({ path: this.whole(path), method, expires_seconds, ...rest }));
    return { url: url.startsWith('/') ? (await this.core.where()).url + url : url, expires_at };
  }
  /**
   * The changes below a path as they happen. `onReady` is called when all further changes will be told. The loop ends when
   * the path is gone, or when you leave it.
   */
  async *watch(path: string, options: { recursive?: boolean; user?: string; onReady?: () => void } & CallOptions = {}): AsyncGenerator<FileEvent, void> {
    const { signal, onReady, ...query } = options;
    const answer = await this.core.body('watchFiles', { path: { id: this.id }, query: { path: this.whole(path), ...query }, accept: SSE, signal });
    try {
      for await (const { event, data } of sentEventsOf(answer)) {
        if (event === 'end') return;
        if (event === 'ready') onReady?.();
        else yield { type: event, ...(JSON.parse(data) as object) } as FileEvent;
      }
    } finally {
      answer.discard();
    }
    throw new ConnectionError('the server ended the watch');
  }
  /** A watcher that collects changes until it is polled. */
  async watcher(path: string, options: Omit<WatcherCreate, 'path'> & CallOptions = {}): Promise<Watcher> {
    const { id } = await this.core.call('createWatcher', this.split({ path: this.whole(path), ...options }));
    return new Watcher(this.core, this.id, id);
  }
}
