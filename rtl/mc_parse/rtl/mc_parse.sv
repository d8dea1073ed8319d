// SPDX-License-Identifier: Apache-2.0
//
// Reads the requests of a datagram, text or binary, and emits operations. Key and value of an
// operation go to their streams before the operation itself, aligned to beats and padded with
// zeros, so each stream must have room for the longest key or value. All requests of a datagram
// become operations in order; the last one has `eod`. A request that the datagram does not hold
// completely is answered with an error and has no effect.
//
// Lines of the get family, storage commands, delete, incr, decr, touch, flush_all, version,
// verbosity and mn are understood; other commands that memcached knows are OP_ERROR with
// ERR_UNSUPPORTED.
module mc_parse
  import wc_pkg::*;
(
    input  logic        clk,
    input  logic        rst,
    input  logic        info_valid,
    output logic        info_ready,
    input  info_t       info,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    output logic        op_valid,
    input  logic        op_ready,
    output meta_t       op,
    output logic        key_valid,
    input  logic        key_ready,
    output logic [63:0] key_data,
    output logic        value_valid,
    input  logic        value_ready,
    output logic [63:0] value_data
);
  typedef enum logic [4:0] {
    S_COMMAND, S_ARG, S_KEY, S_NUMBER, S_SKIP_WORD, S_EOL, S_BODY, S_BODY_END,
    S_REFUSE, S_DISCARD, S_CLOSE, S_BIN, S_BIN_CAS, S_BIN_EXTRAS, S_BIN_EXTRAS2, S_BIN_KEY,
    S_BIN_VALUE, S_BIN_SKIP
  } state_t;
  state_t state;

  command_t command;

  logic [191:0] view;
  logic [4:0] count, take;
  logic tail;
  byte_window window (
      .clk, .rst, .in_valid, .in_ready, .in_data, .in_bytes, .in_last, .view, .count, .tail, .take
  );

  meta_t m;                 // of the operation in progress
  logic [11:0] pos;         // bytes taken of the datagram
  logic [11:0] left;        // bytes that are not taken yet
  assign left = info.size - pos;
  logic eod_sent;
  logic first;              // nothing of the datagram has been taken
  logic [2:0] field;        // words of the line after the command
  logic last_is_noreply;
  logic bad_word;           // of a number
  logic bad_line;           // flags, exptime or the CAS id are not numbers
  logic bad_length;
  logic negative, any_digit;
  logic [63:0] number;
  logic [4:0] digits;
  logic get_pending;        // keys of this line have been emitted, END has not
  logic key_long;
  logic too_short;
  err_t refusal;
  logic [11:0] body_left;
  logic [31:0] bin_body;
  logic [7:0] bin_extras;
  logic [15:0] bin_key;

  // --- Delimiters in the window.
  logic [15:0] is_blank, is_end, is_delim, is_crlf;
  always_comb begin
    for (int i = 0; i < 16; i++) begin
      is_blank[i] = view[8*i+:8] == 8'h20 && 5'(i) < count;
      is_crlf[i] = view[8*i+:8] == 8'h0d && view[8*i+8+:8] == 8'h0a && 5'(i + 1) < count;
      is_end[i] = (view[8*i+:8] == 8'h0a && 5'(i) < count) || is_crlf[i];
      is_delim[i] = is_blank[i] || is_end[i];
    end
  end
  logic [4:0] word;  // bytes before the first delimiter; 16: none
  always_comb begin
    word = 5'd16;
    for (int i = 15; i >= 0; i--) if (is_delim[i]) word = 5'(i);
  end
  logic [3:0] word8;  // the same in 8 bytes
  assign word8 = word > 5'd8 ? 4'd8 : word[3:0];
  logic ends_word;     // the word ends within the first 8 bytes
  assign ends_word = word <= 5'd7;
  logic blank_after, end_after;
  assign blank_after = is_blank[word[3:0]] && !word[4];
  assign end_after = is_end[word[3:0]] && !word[4];
  logic [4:0] end_size;  // of the line end after the word
  assign end_size = is_crlf[word[3:0]] ? 5'd2 : 5'd1;
  logic [3:0] blanks;  // leading blanks, up to 8
  always_comb begin
    blanks = 4'd8;
    for (int i = 7; i >= 0; i--) if (!is_blank[i]) blanks = 4'(i);
  end
  logic word_is_noreply;
  assign word_is_noreply = word == 5'd7 && view[55:0] == {"y", "l", "p", "e", "r", "o", "n"};

  command_t named;
  op_t named_op;
  text_command names (.view(view[127:0]), .word, .blank(is_blank[0]), .named, .named_op);

  // --- A binary header, its first 16 bytes in the window.
  logic [7:0] b_opcode;
  logic [15:0] b_key;
  logic [7:0] b_extras;
  logic [31:0] b_body;
  assign b_opcode = view[15:8];
  assign b_key = swap16(view[31:16]);
  assign b_extras = view[39:32];
  assign b_body = swap32(view[95:64]);

  form_t form;  // of m.opcode
  op_t form_op;
  logic form_quiet, form_key, form_touch, form_quit, b_valid, b_closes;
  err_t b_error;
  binary_form forms (
      .opcode(m.opcode), .bin_key, .bin_extras, .bin_body, .form, .form_op, .form_quiet, .form_key,
      .form_touch, .form_quit, .b_valid, .b_closes, .b_error
  );

  // --- Steps.
  logic go8, go16;
  logic room;
  assign room = op_ready && key_ready && value_ready;
  assign go8 = room && (count >= 5'd10 || tail);
  assign go16 = room && (count >= 5'd16 || tail);

  logic emit;               // the operation `op`
  logic [3:0] key_part, value_part;  // bytes that go to the streams
  logic push_key, push_value;
  meta_t e;
  logic closes_now;  // the operation is the last one although bytes are left: they are not read
  logic [3:0] body_take;
  assign body_take = body_left > 12'd8 ? 4'd8 : body_left[3:0];
  logic [11:0] left_after;
  assign left_after = left - {7'd0, take};
  logic complete;  // the line that starts here has an end
  assign complete = info.lf_end > pos;
  logic digit;
  assign digit = view[7:0] >= "0" && view[7:0] <= "9";
  logic number_field, is_key_field, number_signed;
  // The type of the word `field` of the line.
  always_comb begin
    is_key_field = 1'b0;
    number_field = 1'b0;
    number_signed = 1'b0;
    case (command)
      C_GET: is_key_field = 1'b1;
      C_GAT: begin
        number_field = field == 3'd0;
        number_signed = field == 3'd0;
        is_key_field = field != 3'd0;
      end
      C_STORE, C_CAS: begin
        is_key_field = field == 3'd0;
        number_field = (field >= 3'd1 && field <= 3'd3) || (field == 3'd4 && command == C_CAS);
        number_signed = field == 3'd2 || field == 3'd3;
      end
      C_DELETE: is_key_field = field == 3'd0;
      C_DELTA: begin
        is_key_field = field == 3'd0;
        number_field = field == 3'd1;
      end
      C_TOUCH: begin
        is_key_field = field == 3'd0;
        number_field = field == 3'd1;
        number_signed = 1'b1;
      end
      C_FLUSH: begin
        number_field = field == 3'd0;
        number_signed = 1'b1;
      end
      C_VERBOSITY: number_field = field == 3'd0;
      default: ;
    endcase
  end

  logic [63:0] number_next;
  logic [67:0] number_wide;
  assign number_wide = {1'b0, number, 3'b000} + {3'b000, number, 1'b0} + {64'd0, view[3:0]};
  assign number_next = number_wide[63:0];
  logic number_over;
  assign number_over = number_wide[67:64] != 4'd0;

  // The keys of a gat whose time is not a number are not looked up.
  logic refuses_gat;
  assign refuses_gat = command == C_GAT && field != 3'd0 && bad_word && !is_blank[0] && !is_end[0];
  logic text_get;
  assign text_get = command == C_GET || command == C_GAT;
  logic [8:0] key_total;
  assign key_total = {1'b0, m.klen} + {5'd0, word8};
  logic key_fits;
  assign key_fits = key_total <= 9'(KEY_MAX) && !key_long;

  always_comb begin
    take = 5'd0;
    emit = 1'b0;
    e = m;
    e.eod = 1'b0;
    push_key = 1'b0;
    push_value = 1'b0;
    key_part = 4'd8;
    value_part = 4'd8;
    case (state)
      S_COMMAND:
      if (!info_valid) begin
      end else if (!first && left == 12'd0) begin
        if (op_ready && !eod_sent) begin
          emit = 1'b1;
          e = '0;
          e.op = OP_NOP;
        end
      end else if (go16) begin
        if (first && view[7:0] == 8'h80) begin
        end else if (!complete) begin
          emit = 1'b1;
          e = '0;
          e.op = OP_ERROR;
          e.err = ERR_FORMAT;
        end else begin
          take = word[4] ? 5'd16 : word + {4'd0, blank_after && word < 5'd15};
        end
      end
      S_ARG:
      if (go8) begin
        if (is_end[0]) begin
          take = is_crlf[0] ? 5'd2 : 5'd1;
        end else if (is_blank[0]) begin
          take = {1'b0, blanks};
        end else if (refuses_gat) begin
        end else if (is_key_field) begin
          push_key = 1'b1;
          key_part = word8;
          take = ends_word ? word + (blank_after ? 5'd1 : text_get ? end_size : 5'd0) : 5'd8;
          if (text_get && ends_word) begin
            emit = 1'b1;
            e.klen = {4'd0, word8};
            e.kbeats = 6'd1;
            e.last_key = end_after;
          end
        end else if (number_field) begin
          // The first character of a number.
          if (digit || (view[7:0] == "-" && number_signed)) take = 5'd1;
        end else begin
          take = {1'b0, word8};
        end
      end
      S_KEY:
      if (go8) begin
        push_key = word8 != 4'd0 && m.kbeats < 6'd32;
        key_part = word8;
        take = ends_word ? word + (blank_after ? 5'd1 : (text_get && key_fits) ? end_size : 5'd0) : 5'd8;
        if (text_get && ends_word && key_fits) begin
          emit = 1'b1;
          e.klen = key_total[7:0];
          e.kbeats = m.kbeats + {5'd0, word8 != 4'd0};
          e.last_key = end_after;
        end
      end
      S_NUMBER:
      if (go8) begin
        if (digit || is_blank[0]) take = 5'd1;
      end
      S_SKIP_WORD: if (go8) take = {1'b0, word8};
      S_REFUSE:
      // To the line's end.
      if (go8) begin
        if (is_end[0]) take = is_crlf[0] ? 5'd2 : 5'd1;
        else if (is_blank[0]) take = {1'b0, blanks};
        else take = {1'b0, word8};
        if (is_end[0]) begin
          emit = 1'b1;
          e = '0;
          e.op = OP_ERROR;
          e.err = refusal;
          e.kbeats = m.kbeats;
        end
      end
      S_EOL:
      if (room) begin
        e.quiet = last_is_noreply;
        e.kbeats = m.kbeats;
        e.vbeats = '0;
        e.vlen = '0;
        emit = 1'b1;
        case (command)
          C_GET, C_GAT: begin
            if (get_pending) begin
              e = '0;
              e.op = OP_END;
            end else begin
              e.op = OP_ERROR;
              e.err = ERR_FORMAT;
              e.quiet = last_is_noreply && command == C_GET;
            end
          end
          C_STORE, C_CAS: begin
            if (field < 3'd4 || bad_length || bad_word) begin
              e.op = OP_ERROR;
              e.err = ERR_FORMAT;
              e.quiet = 1'b0;
            end else begin
              emit = 1'b0;
            end
          end
          C_DELETE:
          if (field < 3'd1 || key_long) begin
            e.op = OP_ERROR;
            e.err = ERR_FORMAT;
            if (field < 3'd1) e.quiet = 1'b0;
          end
          C_DELTA, C_TOUCH: begin
            if (field < 3'd2 || key_long) begin
              e.op = OP_ERROR;
              e.err = ERR_FORMAT;
              if (field < 3'd2) e.quiet = 1'b0;
            end else if (bad_word) begin
              e.op = OP_ERROR;
              e.err = command == C_DELTA ? ERR_DELTA : ERR_EXPTIME;
            end
          end
          C_FLUSH:
          if (bad_word && !(last_is_noreply && field == 3'd1)) begin
            e.op = OP_ERROR;
            e.err = ERR_EXPTIME;
          end
          C_VERBOSITY:
          if (field < 3'd1 || bad_word) begin
            e.op = OP_ERROR;
            e.err = ERR_FORMAT;
          end
          C_VERSION: begin
            e.op = OP_VERSION;
            e.quiet = 1'b0;
          end
          C_NOOP: begin
            e.op = too_short ? OP_ERROR : OP_NOOP;
            e.err = ERR_FORMAT;
            e.quiet = 1'b0;
          end
          C_QUIT: emit = 1'b0;
          C_UNSUPPORTED, C_STOP: begin
            e.op = OP_ERROR;
            e.err = ERR_UNSUPPORTED;
          end
          default: begin
            e.op = OP_ERROR;
            e.err = too_short ? ERR_FORMAT : ERR_UNKNOWN;
          end
        endcase
      end
      S_CLOSE:
      if (room) begin
        emit = 1'b1;
        e.op = OP_ERROR;
        e.err = ERR_FORMAT;
        e.quiet = 1'b0;
        e.vbeats = '0;
      end
      S_BODY:
      if (go8) begin
        push_value = 1'b1;
        value_part = body_take;
        take = {1'b0, body_take};
      end
      S_BODY_END:
      if (go8) begin
        take = 5'd2;
        emit = 1'b1;
        if (key_long || bad_line) begin
          e.op = OP_ERROR;
          e.err = ERR_FORMAT;
        end else if (view[15:0] != 16'h0a0d) begin
          e.op = OP_ERROR;
          e.err = ERR_DATA;
        end else if (m.vlen > 12'(VALUE_MAX)) begin
          e.op = OP_ERROR;
          e.err = ERR_TOOLARGE;
        end
      end
      S_DISCARD:
      // To the end of the datagram.
      // (When it has ended, the window holds the next one.)
      if (room && left != 12'd0 && (count >= 5'd8 || tail)) take = count > 5'd16 ? 5'd16 : count;
      S_BIN:
      if (left == 12'd0) begin
        if (op_ready && !eod_sent) begin
          emit = 1'b1;
          e = '0;
          e.op = OP_NOP;
        end
      end else if (go16 && left >= 12'd24 && view[7:0] == 8'h80) begin
        take = 5'd16;
      end
      S_BIN_CAS:
      if (go8) begin
        take = 5'd8;
        e.bin = 1'b1;
        e.kbeats = '0;
        e.vbeats = '0;
        e.vlen = '0;
        e.op = form_op;
        e.quiet = form_quiet;
        if (!b_valid) begin
          emit = 1'b1;
          e.op = OP_ERROR;
          e.err = b_error;
          e.quiet = 1'b0;
        end else if ({20'd0, left} - 32'd8 < bin_body) begin
          emit = 1'b1;
          e.op = OP_ERROR;
          e.err = ERR_FORMAT;
          e.quiet = 1'b0;
        end else if (bin_body == 32'd0) begin
          emit = 1'b1;
        end
      end
      S_BIN_EXTRAS:
      if (go16) begin
        take = bin_extras == 8'd20 ? 5'd16 : bin_extras[4:0];
        if (form == FORM_FLUSH) begin
          emit = 1'b1;
          e.exptime = view[7] ? 32'h7fff_ffff : swap32(view[31:0]);
        end
      end
      S_BIN_EXTRAS2: if (go8) take = 5'd4;
      S_BIN_KEY:
      if (go8) begin
        push_key = 1'b1;
        key_part = bin_key > 16'd8 ? 4'd8 : bin_key[3:0];
        take = {1'b0, key_part};
        e.kbeats = m.kbeats + 6'd1;
        if (bin_key <= 16'd8 && body_left == 12'd0) emit = 1'b1;
      end
      S_BIN_VALUE:
      if (go8) begin
        push_value = 1'b1;
        value_part = body_take;
        take = {1'b0, body_take};
        e.vbeats = m.vbeats + 9'd1;
        if (body_left <= 12'd8) begin
          emit = 1'b1;
          if (m.vlen > 12'(VALUE_MAX)) begin
            e.op = OP_ERROR;
            e.err = ERR_TOOLARGE;
            e.quiet = 1'b0;
          end
        end
      end
      S_BIN_SKIP:
      if (room && (count >= 5'd8 || tail)) take = {5'(body_take)};
      default: ;
    endcase
    // The datagram ends with this operation.
    if (emit) e.eod = left == {7'd0, take} || closes_now;
  end

  always_comb begin
    closes_now = 1'b0;
    case (state)
      S_COMMAND, S_CLOSE: closes_now = 1'b1;
      S_EOL:
        closes_now = (command == C_STOP);
      S_BIN: closes_now = 1'b1;
      S_BIN_CAS:
        closes_now = (!b_valid && (b_closes || {20'd0, left} - 32'd8 <= bin_body)) ||
                     (b_valid && {20'd0, left} - 32'd8 < bin_body) || form_quit;
      default: ;
    endcase
  end

  assign op_valid = emit;
  assign op = e;
  assign key_valid = push_key;
  assign key_data = view[63:0] & byte_mask(key_part);
  assign value_valid = push_value;
  assign value_data = view[63:0] & byte_mask(value_part);

  logic finish;  // the datagram has been read
  assign finish = (state == S_COMMAND && info_valid && !first && left == 12'd0 && (eod_sent || op_ready)) ||
                  (state == S_BIN && left == 12'd0 && (eod_sent || op_ready));
  assign info_ready = finish;

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_COMMAND;
      pos <= '0;
      first <= 1'b1;
      eod_sent <= 1'b0;
      m <= '0;
    end else begin
      pos <= pos + {7'd0, take};
      if (take != 5'd0) first <= 1'b0;
      if (emit && e.eod) eod_sent <= 1'b1;
      case (state)
        S_COMMAND: begin
          m <= '0;
          command <= named;
          m.op <= named_op;
          m.ret_cas <= word == 5'd4;  // gets, gats
          m.touch <= named == C_GAT;
          m.cas_cmp <= named == C_CAS;
          field <= '0;
          last_is_noreply <= 1'b0;
          bad_word <= 1'b0;
          bad_line <= 1'b0;
          bad_length <= 1'b0;
          get_pending <= 1'b0;
          key_long <= 1'b0;
          refusal <= ERR_FORMAT;
          too_short <= is_end[0] || is_end[1] || (is_end[2] && !is_crlf[2]);
          if (info_valid && !first && left == 12'd0) begin
          end else if (info_valid && go16) begin
            if (first && view[7:0] == 8'h80) state <= S_BIN;
            else if (!complete) state <= S_DISCARD;
            else state <= word[4] ? S_SKIP_WORD : S_ARG;
            if (word[4]) command <= C_UNKNOWN;
          end
        end
        S_ARG:
        if (go8) begin
          number <= '0;
          digits <= '0;
          negative <= 1'b0;
          any_digit <= 1'b0;
          if (is_end[0]) begin
            state <= S_EOL;
          end else if (refuses_gat) begin
            refusal <= ERR_EXPTIME;
            state <= S_REFUSE;
          end else if (!is_blank[0]) begin
            last_is_noreply <= word_is_noreply;
            if (field != 3'd7) field <= field + 3'd1;
            if (is_key_field) begin
              m.klen <= {4'd0, word8};
              m.kbeats <= 6'd1;
              if (!ends_word) begin
                state <= S_KEY;
              end else if (text_get) begin
                get_pending <= blank_after;
                m.kbeats <= '0;
                m.klen <= '0;
                if (end_after) state <= S_COMMAND;
              end
            end else if (number_field) begin
              // `field` counts the word when it begins.
              if (digit) begin
                number <= {60'd0, view[3:0]};
                digits <= 5'd1;
                any_digit <= 1'b1;
                state <= S_NUMBER;
              end else if (view[7:0] == "-" && number_signed) begin
                negative <= 1'b1;
                state <= S_NUMBER;
              end else begin
                // Not a number.
                if (command == C_STORE || command == C_CAS) begin
                  if (field == 3'd3) bad_length <= 1'b1;
                  else bad_line <= 1'b1;
                end else begin
                  bad_word <= 1'b1;
                end
                state <= S_SKIP_WORD;
              end
            end else begin
              state <= S_SKIP_WORD;
            end
          end
        end
        S_KEY:
        if (go8) begin
          if (key_total > 9'(KEY_MAX)) key_long <= 1'b1;
          else m.klen <= key_total[7:0];
          if (push_key) m.kbeats <= m.kbeats + 6'd1;
          if (ends_word) begin
            state <= S_ARG;
            if (text_get) begin
              if (key_fits) begin
                get_pending <= blank_after;
                m.kbeats <= '0;
                m.klen <= '0;
                if (end_after) state <= S_COMMAND;
              end else begin
                state <= S_REFUSE;
              end
            end
          end
        end
        S_NUMBER:
        if (go8) begin
          if (digit) begin
            number <= number_next;
            any_digit <= 1'b1;
            if (digits != 5'd31) digits <= digits + 5'd1;
            if (number_over) digits <= 5'd31;
          end else begin
            // The word ends here, or is no number.
            state <= is_delim[0] ? S_ARG : S_SKIP_WORD;
            begin
              logic bad;
              logic [31:0] value32;
              bad = !is_delim[0] || (!any_digit && command != C_TOUCH && command != C_GAT &&
                                     command != C_FLUSH);
              value32 = negative ? ~number[31:0] + 32'd1 : number[31:0];
              case (command)
                C_STORE, C_CAS:
                case (field)
                  3'd2: begin
                    m.flags <= number[31:0];
                    if (bad || digits == 5'd31) bad_line <= 1'b1;
                  end
                  3'd3: begin
                    m.exptime <= value32;
                    if (bad || digits == 5'd31 || number[63]) bad_line <= 1'b1;
                  end
                  3'd4: begin
                    m.vlen <= number[11:0];
                    if (bad || digits > 5'd10 || negative || number > 64'h7fff_fffd)
                      bad_length <= 1'b1;
                    // Longer than any datagram.
                    if (number > 64'd4095) m.vlen <= 12'hfff;
                  end
                  default: begin
                    m.cas <= number;
                    if (bad || digits > 5'd22) bad_line <= 1'b1;
                  end
                endcase
                C_DELTA: begin
                  m.delta <= number;
                  if (bad || digits > 5'd22) bad_word <= 1'b1;
                end
                default: begin
                  m.exptime <= value32;
                  if (bad || digits > 5'd11 || number > 64'h7fff_ffff) bad_word <= 1'b1;
                  if (command == C_VERBOSITY && number > 64'h7fff_ffff && number <= 64'hffff_ffff && !bad)
                    bad_word <= 1'b0;
                end
              endcase
            end
          end
        end
        S_SKIP_WORD: if (go8 && ends_word) state <= S_ARG;
        S_REFUSE: if (emit) state <= S_COMMAND;
        S_EOL:
        if (room) begin
          body_left <= m.vlen;
          m.vbeats <= '0;
          if (emit) state <= S_COMMAND;
          case (command)
            C_STORE, C_CAS:
            if (!emit) begin
              m.quiet <= last_is_noreply;
              if (command == C_CAS && field < 3'd5) bad_line <= 1'b1;
              state <= {1'b0, m.vlen} + 13'd2 > {1'b0, left} ? S_CLOSE : m.vlen == 12'd0 ? S_BODY_END : S_BODY;
            end
            C_QUIT: state <= S_DISCARD;
            C_STOP: state <= S_DISCARD;
            default: ;
          endcase
        end
        S_BODY:
        if (go8) begin
          m.vbeats <= m.vbeats + 9'd1;
          body_left <= body_left - {8'd0, body_take};
          if (body_left <= 12'd8) state <= S_BODY_END;
        end
        S_BODY_END: if (go8) state <= S_COMMAND;
        S_DISCARD: if (left_after == 12'd0) state <= S_COMMAND;
        S_BIN: begin
          m <= '0;
          m.bin <= 1'b1;
          m.opcode <= b_opcode;
          m.opaque <= view[127:96];
          bin_key <= b_key;
          bin_extras <= b_extras;
          bin_body <= b_body;
          if (left == 12'd0) begin
            if (finish) state <= S_COMMAND;
          end else if (go16) begin
            state <= take != 5'd0 ? S_BIN_CAS : S_DISCARD;
          end
        end
        S_BIN_CAS:
        if (go8) begin
          m.op <= form_op;
          m.quiet <= form_quiet;
          m.ret_key <= form_key;
          m.touch <= form_touch;
          m.cas <= swap64(view[63:0]);
          m.cas_cmp <= view[63:0] != 64'd0;
          // A compare-and-swap of all three.
          if (view[63:0] != 64'd0 && (form_op == OP_ADD || form_op == OP_REPLACE)) m.op <= OP_SET;
          m.klen <= bin_key[7:0];
          body_left <= 12'(bin_body - {16'd0, bin_key} - {24'd0, bin_extras});
          m.vlen <= 12'(bin_body - {16'd0, bin_key} - {24'd0, bin_extras});
          if (emit) begin
            if (e.eod) state <= left_after == 12'd0 ? S_BIN : S_DISCARD;
            else if (b_valid || bin_body == 32'd0) state <= S_BIN;
            else begin
              body_left <= bin_body[11:0];
              state <= S_BIN_SKIP;
            end
          end else begin
            state <= bin_extras != 8'd0 ? S_BIN_EXTRAS : S_BIN_KEY;
          end
        end
        S_BIN_EXTRAS:
        if (go16) begin
          case (form)
            FORM_STORE: begin
              m.flags <= swap32(view[31:0]);
              m.exptime <= view[39] ? 32'h7fff_ffff : swap32(view[63:32]);
            end
            FORM_KEYTIME: m.exptime <= view[7] ? 32'h7fff_ffff : swap32(view[31:0]);
            default: begin
              m.delta <= swap64(view[63:0]);
              m.initial_value <= swap64(view[127:64]);
            end
          endcase
          state <= form == FORM_FLUSH ? S_BIN : bin_extras == 8'd20 ? S_BIN_EXTRAS2 : S_BIN_KEY;
        end
        S_BIN_EXTRAS2:
        if (go8) begin
          m.vivify <= view[31:0] != 32'hffff_ffff;
          m.exptime <= view[7] ? 32'h7fff_ffff : swap32(view[31:0]);
          state <= S_BIN_KEY;
        end
        S_BIN_KEY:
        if (go8) begin
          m.kbeats <= m.kbeats + 6'd1;
          bin_key <= bin_key - {12'd0, key_part};
          if (bin_key <= 16'd8) state <= body_left != 12'd0 ? S_BIN_VALUE : S_BIN;
        end
        S_BIN_VALUE:
        if (go8) begin
          m.vbeats <= m.vbeats + 9'd1;
          body_left <= body_left - {8'd0, body_take};
          if (body_left <= 12'd8) state <= S_BIN;
        end
        S_BIN_SKIP: begin
          body_left <= body_left - {7'd0, take};
          if (body_left == {7'd0, take}) state <= S_BIN;
        end
        default: ;
      endcase
      // A storage command whose body is not all here.
      if (state == S_CLOSE && room) state <= left == 12'd0 ? S_COMMAND : S_DISCARD;
      if (finish) begin
        pos <= '0;
        first <= 1'b1;
        eod_sent <= 1'b0;
      end
    end
  end

endmodule
