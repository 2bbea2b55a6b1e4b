# The R of a code context: one global environment that lives as long as its process. paddock-api sends this text
# and then requests over descriptor 250: a line "ID BYTES ENV_BYTES", variables as NAME=VALUE with a NUL after each,
# then the code. Events go to descriptor 251, a JSON object on each line, the first of them {id: 0, type: "ready"};
# from "begin" on SIGINT interrupts the code. Descriptors 1 and 2 are the code's own.
#
# Needs nothing but base R. Every value that R would print is a result; plots are results of the cell's end, as PNG.

local({
	TEXT_MAX <- 2^20; IMAGE_MAX <- 6 * 2^20; ROWS_MAX <- 1000; COLUMNS_MAX <- 100; TRACE_MAX <- 40
	requests <- file("/proc/self/fd/250", "rb", raw = TRUE)
	events <- file("/proc/self/fd/251", "wb", raw = TRUE)
	id <- "0"
	plots <- file.path(tempdir(), "paddock")

	# ---- events ----

	quoted <- function(text) {
		text <- iconv(paste(text, collapse = "\n"), "", "UTF-8", sub = "\ufffd")
		text <- gsub("\\", "\\\\", text, fixed = TRUE)
		text <- gsub("\"", "\\\"", text, fixed = TRUE)
		for (i in 1:31) {
			code <- intToUtf8(i)
			if (grepl(code, text, fixed = TRUE)) text <- gsub(code, sprintf("\\u%04x", i), text, fixed = TRUE)
		}
		paste0("\"", text, "\"")
	}

	emit <- function(type, ...) {
		suspendInterrupts({
			fields <- c(...)
			line <- paste0("{\"id\":", id, ",\"type\":\"", type, "\"", paste0(",", fields, recycle0 = TRUE, collapse = ""), "}\n")
			flush(stdout())
			writeBin(charToRaw(enc2utf8(line)), events)
			flush(events)
		})
	}

	field <- function(name, text) paste0("\"", name, "\":", quoted(text))

	base64 <- function(bytes) {
		digits <- c(LETTERS, letters, 0:9, "+", "/")
		n <- length(bytes)
		padding <- (3 - n %% 3) %% 3
		b <- matrix(c(as.integer(bytes), integer(padding)), nrow = 3)
		four <- rbind(b[1, ] %/% 4, b[1, ] %% 4 * 16 + b[2, ] %/% 16, b[2, ] %% 16 * 4 + b[3, ] %/% 64, b[3, ] %% 64)
		text <- digits[four + 1]
		if (padding) text[(length(text) - padding + 1):length(text)] <- "="
		paste(text, collapse = "")
	}

	# ---- results ----

	column <- function(values) {
		if (is.factor(values) || inherits(values, c("Date", "POSIXt"))) values <- as.character(values)
		one <- function(v) {
			if (length(v) != 1 || is.na(v)) "null"
			else if (is.logical(v)) tolower(as.character(v))
			else if (is.numeric(v)) if (is.finite(v)) format(v, digits = 15) else "null"
			else quoted(as.character(v))
		}
		paste0("[", paste(vapply(as.list(values), one, ""), collapse = ","), "]")
	}

	frame <- function(value) {
		value <- as.data.frame(value)
		value <- value[seq_len(min(nrow(value), ROWS_MAX)), seq_len(min(ncol(value), COLUMNS_MAX)), drop = FALSE]
		columns <- vapply(seq_along(value), function(i) paste0(quoted(names(value)[i]), ":", column(value[[i]])), "")
		paste0("\"data\":{", paste(columns, collapse = ","), "}")
	}

	show <- function(value, main) {
		text <- paste(utils::capture.output(if (isS4(value)) methods::show(value) else print(value)), collapse = "\n")
		if (!nzchar(text)) return(invisible())
		cut <- nchar(text) > TEXT_MAX
		emit("result", paste0("\"main\":", if (main) "true" else "false"), paste0("\"truncated\":", if (cut) "true" else "false"),
			field("text", substr(text, 1, TEXT_MAX)), if (is.data.frame(value)) frame(value))
	}

	open_device <- function(...) {
		dir.create(plots, showWarnings = FALSE)
		grDevices::png(file.path(plots, paste0("plot-", length(list.files(plots)), "-%05d.png")), width = 840, height = 840, res = 120)
	}

	show_plots <- function() {
		while (grDevices::dev.cur() > 1) grDevices::dev.off()
		files <- list.files(plots, full.names = TRUE)
		for (f in files[order(file.mtime(files), files)]) {
			size <- file.size(f)
			if (size > 0 && size <= IMAGE_MAX)
				emit("result", "\"main\":false,\"truncated\":false", field("text", "plot"),
					paste0("\"png\":\"", base64(readBin(f, "raw", size)), "\""))
		}
		unlink(plots, recursive = TRUE)
	}

	# ---- running ----

	evaluate <- function(code) {
		parsed <- parse(text = code, keep.source = FALSE)
		for (i in seq_along(parsed)) {
			done <- withVisible(eval(parsed[[i]], globalenv()))
			if (done$visible) show(done$value, i == length(parsed))
		}
	}

	report <- function(name, value, calls) {
		emit("error", field("name", name), field("value", value), field("traceback", calls))
	}

	on_error <- function(e, calls) {
		name <- class(e)[1]
		value <- conditionMessage(e)
		head <- if (is.null(conditionCall(e))) "Error: " else paste0("Error in ", paste(deparse(conditionCall(e), nlines = 1), collapse = " "), ": ")
		report(if (name %in% c("simpleError", "rlang_error")) "Error" else name, value, c(paste0(head, value), calls))
	}

	# The calls of the code: those between this file's own first and last ones.
	trace <- function(calls) {
		texts <- vapply(calls, function(c) paste(deparse(c, nlines = 1, width.cutoff = 100), collapse = " "), "")
		begin <- which(grepl("^eval\\(parsed\\[\\[i\\]\\]", texts))
		texts <- if (length(begin)) texts[-seq_len(begin[1] + 1)] else character()
		texts <- texts[!grepl("^(\\.handleSimpleError|h\\(simpleError|\\(function \\(e\\)|doTryCatch|tryCatch|withCallingHandlers)", texts)]
		if (length(texts)) c("Traceback:", paste0(seq_along(texts), ". ", texts)[seq_len(min(length(texts), TRACE_MAX))]) else character()
	}

	execute <- function(code, variables) {
		before <- Sys.getenv(names(variables), unset = NA, names = TRUE)
		if (length(variables)) do.call(Sys.setenv, as.list(variables))
		calls <- character()
		tryCatch(allowInterrupts(NULL), interrupt = function(e) NULL) # of no execution
		emit("begin")
		tryCatch(
			withCallingHandlers(allowInterrupts(evaluate(code)), error = function(e) calls <<- trace(sys.calls())),
			error = function(e) on_error(e, calls),
			interrupt = function(e) report("Interrupted", "the code was interrupted", "Interrupted"))
		tryCatch(show_plots(), error = function(e) on_error(e, character()))
		for (name in names(variables))
			if (is.na(before[[name]])) Sys.unsetenv(name) else do.call(Sys.setenv, structure(list(before[[name]]), names = name))
	}

	read_line <- function() {
		bytes <- raw()
		repeat {
			b <- readBin(requests, "raw", 1)
			if (!length(b)) quit("no", 0, FALSE)
			if (b == as.raw(10)) return(rawToChar(bytes))
			bytes <- c(bytes, b)
		}
	}

	read_bytes <- function(n) {
		got <- raw()
		while (length(got) < n) {
			more <- readBin(requests, "raw", n - length(got))
			if (!length(more)) quit("no", 0, FALSE)
			got <- c(got, more)
		}
		got
	}

	pairs_of <- function(bytes) {
		if (!length(bytes)) return(character())
		ends <- which(bytes == as.raw(0))
		starts <- c(1, ends[-length(ends)] + 1)
		texts <- mapply(function(a, b) { t <- rawToChar(bytes[a:(b - 1)]); Encoding(t) <- "UTF-8"; t }, starts, ends)
		at <- regexpr("=", texts, fixed = TRUE)
		structure(substring(texts, at + 1), names = substring(texts, 1, at - 1))
	}

	options(device = open_device, warn = 1, width = 100, menu.graphics = FALSE)
	count <- 0
	emit("ready")
	# Interrupts wait for the code: an end that is not told would be waited for.
	suspendInterrupts(repeat {
		head <- strsplit(read_line(), " ")[[1]]
		variables <- pairs_of(read_bytes(as.numeric(head[3])))
		code <- rawToChar(read_bytes(as.numeric(head[2])))
		Encoding(code) <- "UTF-8"
		id <- head[1]
		count <- count + 1
		execute(code, variables)
		emit("end", paste0("\"count\":", count))
	})
})
