// SPDX-License-Identifier: Apache-2.0
//
// Reads the text requests of a datagram: a digit, a blank or a line end a cycle, 8 bytes of a value a
// cycle, a word of up to 8 bytes in two. In the first of these it is found out where the word ends and
// what it is, in the second it is taken. Of a longer key 8 bytes a cycle are taken where all 16 are there.
//
// Lines of the get family, storage commands, delete, incr, decr, touch, flush_all, version,
// verbosity and mn are understood; other commands that memcached knows are OP_ERROR with
// ERR_UNSUPPORTED.
module text_reader
  import wc_pkg::*;
(
    input  logic         clk,
    input  logic         rst,
    input  logic         active,    // the datagram is text, and there is more of it
    input  logic         room,      // for an operation, its key and its value
    input  logic [127:0] view,
    input  marks_t       marks,
    input  window_t      w,
    input  logic [11:0]  left,      // bytes of the datagram
    input  logic         line_complete,  // the line that starts here has an end
    output logic         between,   // no request has been begun
    output reading_t     reading
);
  typedef enum logic [3:0] {
    S_COMMAND, S_ARG, S_KEY, S_NUMBER, S_SKIP_WORD, S_EOL, S_BODY, S_BODY_END, S_REFUSE, S_CLOSE
  } state_t;
  state_t state;
  assign between = state == S_COMMAND;

  command_t command;
  meta_t m;                 // of the operation in progress
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

  // --- The window's first word and line end.
  logic [4:0] s_word;
  logic [3:0] s_word8, s_word_take;
  logic s_ends_word, s_blank_after, s_end_after, s_word_is_noreply, far_clear, at_blank, at_end, at_delim, at_crlf, s_short_line;
  logic [7:0] with_end;
  text_scan scan (
      .view(view[55:0]), .marks, .with_end, .word(s_word), .word8(s_word8), .ends_word(s_ends_word), .far_clear,
      .blank_after(s_blank_after), .end_after(s_end_after), .word_take(s_word_take),
      .word_is_noreply(s_word_is_noreply), .at_blank, .at_end, .at_delim, .at_crlf, .short_line(s_short_line)
  );
  command_t s_named;
  op_t s_named_op;
  text_command names (.view, .word(s_word), .blank(at_blank), .named(s_named), .named_op(s_named_op));

  logic digit;
  assign digit = marks.digit;

  // What was found out in the cycle before.
  logic scanned;            // nothing has been done since, so it is so
  logic is_command;         // and the line that starts here can begin
  logic complete;           // it has an end
  logic word_long, word_is_4, ends_word, blank_after, end_after, word_is_noreply, short_line;
  logic [3:0] word8, word_take;
  command_t named;
  op_t named_op;
  logic stepped;            // something is done in this cycle
  logic goes_on;            // it is a key's 8 bytes, and the next 8 are the key's, too
  always_ff @(posedge clk) begin
    scanned <= !rst && w.has10 && (!stepped || goes_on);
    is_command <= !rst && active && (w.has16 || !s_word[4]) && !stepped;
    complete <= line_complete;
    word_long <= s_word[4];
    word_is_4 <= s_word == 5'd4;
    word8 <= goes_on ? 4'd8 : s_word8;
    word_take <= goes_on ? 4'd8 : s_word_take;
    ends_word <= s_ends_word && !goes_on;
    blank_after <= s_blank_after && !goes_on;
    end_after <= s_end_after && !goes_on;
    word_is_noreply <= s_word_is_noreply;
    short_line <= s_short_line;
    named <= s_named;
    named_op <= s_named_op;
  end

  logic go_arg;             // a step of S_ARG
  // What the word `field` of the line is. Found out in the cycle before it is read.
  typedef struct packed {
    logic is_key;
    logic is_number;
    logic is_signed;
  } field_t;
  function automatic field_t field_of(command_t line, logic [2:0] at);
    field_of = '0;
    case (line)
      C_GET: field_of.is_key = 1'b1;
      C_GAT: begin
        field_of.is_number = at == 3'd0;
        field_of.is_signed = at == 3'd0;
        field_of.is_key = at != 3'd0;
      end
      C_STORE, C_CAS: begin
        field_of.is_key = at == 3'd0;
        field_of.is_number = (at >= 3'd1 && at <= 3'd3) || (at == 3'd4 && line == C_CAS);
        field_of.is_signed = at == 3'd2 || at == 3'd3;
      end
      C_DELETE: field_of.is_key = at == 3'd0;
      C_DELTA: begin
        field_of.is_key = at == 3'd0;
        field_of.is_number = at == 3'd1;
      end
      C_TOUCH: begin
        field_of.is_key = at == 3'd0;
        field_of.is_number = at == 3'd1;
        field_of.is_signed = 1'b1;
      end
      C_FLUSH: begin
        field_of.is_number = at == 3'd0;
        field_of.is_signed = 1'b1;
      end
      C_VERBOSITY: field_of.is_number = at == 3'd0;
      default: ;
    endcase
  endfunction
  // The keys of a gat whose time is not a number are not looked up.
  logic refuses_gat;
  assign refuses_gat = command == C_GAT && field != 3'd0 && bad_word && !at_delim;
  logic [2:0] field_next;
  field_t kind;
  assign field_next = state == S_ARG && go_arg && !at_delim && !refuses_gat && field != 3'd7 ? field + 3'd1 : field;
  always_ff @(posedge clk) kind <= state == S_COMMAND ? field_of(named, 3'd0) : field_of(command, field_next);

  // --- Steps.
  logic go8, go_word, go_command, go_refuse;
  assign go8 = room && w.has10;
  assign go_word = room && scanned;
  assign go_command = room && is_command;
  assign go_arg = at_delim || refuses_gat || (kind.is_number && digit) ? go8 : go_word;
  assign go_refuse = at_delim ? go8 : go_word;
  assign goes_on = go_word && !ends_word && far_clear && w.full17 &&
                   (state == S_KEY || (state == S_ARG && kind.is_key && !refuses_gat && !at_delim));
  always_comb begin
    case (state)
      S_COMMAND: stepped = go_command;
      S_ARG: stepped = go_arg;
      S_KEY, S_SKIP_WORD: stepped = go_word;
      S_REFUSE: stepped = go_refuse;
      default: stepped = 1'b1;
    endcase
  end
  logic [3:0] body_take;    // of the value, in this cycle
  logic body_ends;          // and these are its last bytes
  logic [63:0] number_next;
  logic [67:0] number_wide;
  assign number_wide = {1'b0, number, 3'b000} + {3'b000, number, 1'b0} + {64'd0, view[3:0]};
  assign number_next = number_wide[63:0];
  logic number_over;
  assign number_over = number_wide[67:64] != 4'd0;
  // What the number is where its word ends.
  logic number_spoilt;
  logic [31:0] number32;
  assign number_spoilt = !at_delim || (!any_digit && command != C_TOUCH && command != C_GAT && command != C_FLUSH);
  assign number32 = negative ? ~number[31:0] + 32'd1 : number[31:0];

  logic text_get;
  assign text_get = command == C_GET || command == C_GAT;
  logic [8:0] key_total;
  assign key_total = {1'b0, m.klen} + {5'd0, word8};
  logic [3:0] key_room;     // bytes that the key may still get, up to 8
  logic key_fits;
  assign key_fits = word8 <= key_room && !key_long;
  // The line end after the last key of a get line is taken with the key.
  always_comb begin
    for (int i = 0; i < 8; i++)
      with_end[i] = text_get && (state == S_ARG || (state == S_KEY && !key_long && 5'(i) <= {1'b0, key_room}));
  end

  logic [3:0] take;
  logic emit, push_key, push_value, stops;
  logic [3:0] key_part, value_part;
  meta_t e;                 // the operation that is emitted
  assign reading = '{take: take, emit: emit, op: e, stops: stops, push_key: push_key, key_part: key_part,
                     push_value: push_value, value_part: value_part};
  always_comb begin
    take = 4'd0;
    emit = 1'b0;
    e = m;
    stops = 1'b0;
    push_key = 1'b0;
    push_value = 1'b0;
    key_part = 4'd8;
    value_part = 4'd8;
    case (state)
      S_COMMAND:
      if (go_command) begin
        if (!complete) begin
          emit = 1'b1;
          stops = 1'b1;
          e = '0;
          e.op = OP_ERROR;
          e.err = ERR_FORMAT;
        end else begin
          take = word_take;  // of a longer word the first 8 bytes
        end
      end
      S_ARG:
      if (go_arg) begin
        if (at_end) begin
          take = at_crlf ? 4'd2 : 4'd1;
        end else if (at_blank) begin
          take = 4'd1;
        end else if (refuses_gat) begin
        end else if (kind.is_key) begin
          push_key = 1'b1;
          key_part = word8;
          take = word_take;
          if (text_get && ends_word) begin
            emit = 1'b1;
            e.klen = {4'd0, word8};
            e.kbeats = 6'd1;
            e.last_key = end_after;
          end
        end else if (kind.is_number) begin
          // The first character of a number.
          if (digit || (view[7:0] == "-" && kind.is_signed)) take = 4'd1;
        end else begin
          take = word_take;
        end
      end
      S_KEY:
      if (go_word) begin
        push_key = word8 != 4'd0 && m.kbeats < 6'd32;
        key_part = word8;
        take = word_take;
        if (text_get && ends_word && key_fits) begin
          emit = 1'b1;
          e.klen = key_total[7:0];
          e.kbeats = m.kbeats + {5'd0, word8 != 4'd0};
          e.last_key = end_after;
        end
      end
      S_NUMBER:
      if (go8) begin
        // The line's end is taken with its last number.
        if (digit || at_delim) take = at_crlf ? 4'd2 : 4'd1;
      end
      S_SKIP_WORD: if (go_word) take = word_take;
      S_REFUSE:
      // To the line's end.
      if (go_refuse) begin
        if (at_end) take = at_crlf ? 4'd2 : 4'd1;
        else if (at_blank) take = 4'd1;
        else take = word_take;
        if (at_end) begin
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
          C_QUIT: begin
            emit = 1'b0;
            stops = 1'b1;
          end
          C_UNSUPPORTED, C_STOP: begin
            stops = command == C_STOP;
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
        stops = 1'b1;
        e.op = OP_ERROR;
        e.err = ERR_FORMAT;
        e.quiet = 1'b0;
        e.vbeats = '0;
      end
      S_BODY:
      if (go8) begin
        push_value = 1'b1;
        value_part = body_take;
        take = body_take;
      end
      S_BODY_END:
      if (go8) begin
        take = 4'd2;
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
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_COMMAND;
      m <= '0;
    end else begin
      case (state)
        S_COMMAND: begin
          m <= '0;
          command <= named;
          m.op <= named_op;
          m.ret_cas <= word_is_4;  // gets, gats
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
          too_short <= short_line;
          if (go_command && complete) state <= ends_word ? S_ARG : S_SKIP_WORD;
          if (word_long) command <= C_UNKNOWN;
        end
        S_ARG:
        if (go_arg) begin
          field <= field_next;
          number <= '0;
          digits <= '0;
          negative <= 1'b0;
          any_digit <= 1'b0;
          if (at_end) begin
            state <= S_EOL;
          end else if (refuses_gat) begin
            refusal <= ERR_EXPTIME;
            state <= S_REFUSE;
          end else if (!at_blank) begin
            last_is_noreply <= word_is_noreply && !(kind.is_number && digit);
            if (kind.is_key) begin
              m.klen <= {4'd0, word8};
              m.kbeats <= 6'd1;
              key_room <= 4'd8;
              if (!ends_word) begin
                state <= S_KEY;
              end else if (text_get) begin
                get_pending <= blank_after;
                m.kbeats <= '0;
                m.klen <= '0;
                if (end_after) state <= S_COMMAND;
              end
            end else if (kind.is_number) begin
              // `field` counts the word when it begins.
              if (digit) begin
                number <= {60'd0, view[3:0]};
                digits <= 5'd1;
                any_digit <= 1'b1;
                state <= S_NUMBER;
              end else if (view[7:0] == "-" && kind.is_signed) begin
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
            end else if (!ends_word) begin
              state <= S_SKIP_WORD;
            end
          end
        end
        S_KEY:
        if (go_word) begin
          if (key_total > 9'(KEY_MAX)) key_long <= 1'b1;
          else m.klen <= key_total[7:0];
          key_room <= key_total <= 9'(KEY_MAX - 8) ? 4'd8 : key_total > 9'(KEY_MAX) ? 4'd0
                      : 4'(9'(KEY_MAX) - key_total);
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
            state <= at_end ? S_EOL : at_blank ? S_ARG : S_SKIP_WORD;
            case (command)
              C_STORE, C_CAS:
              case (field)
                3'd2: begin
                  m.flags <= number[31:0];
                  if (number_spoilt || digits == 5'd31) bad_line <= 1'b1;
                end
                3'd3: begin
                  m.exptime <= number32;
                  if (number_spoilt || digits == 5'd31 || number[63]) bad_line <= 1'b1;
                end
                3'd4: begin
                  m.vlen <= number[11:0];
                  if (number_spoilt || digits > 5'd10 || negative || number > 64'h7fff_fffd)
                    bad_length <= 1'b1;
                  // Longer than any datagram.
                  if (number > 64'd4095) m.vlen <= 12'hfff;
                end
                default: begin
                  m.cas <= number;
                  if (number_spoilt || digits > 5'd22) bad_line <= 1'b1;
                end
              endcase
              C_DELTA: begin
                m.delta <= number;
                if (number_spoilt || digits > 5'd22) bad_word <= 1'b1;
              end
              default: begin
                m.exptime <= number32;
                if (number_spoilt || digits > 5'd11 || number > 64'h7fff_ffff) bad_word <= 1'b1;
                if (command == C_VERBOSITY && number > 64'h7fff_ffff && number <= 64'hffff_ffff && !number_spoilt)
                  bad_word <= 1'b0;
              end
            endcase
          end
        end
        S_SKIP_WORD: if (go_word && ends_word) state <= S_ARG;
        S_REFUSE: if (emit) state <= S_COMMAND;
        S_EOL:
        if (room) begin
          body_left <= m.vlen;
          body_take <= m.vlen > 12'd8 ? 4'd8 : m.vlen[3:0];
          body_ends <= m.vlen <= 12'd8;
          m.vbeats <= '0;
          if (emit) state <= S_COMMAND;
          case (command)
            C_STORE, C_CAS:
            if (!emit) begin
              m.quiet <= last_is_noreply;
              if (command == C_CAS && field < 3'd5) bad_line <= 1'b1;
              state <= {1'b0, m.vlen} + 13'd2 > {1'b0, left} ? S_CLOSE : m.vlen == 12'd0 ? S_BODY_END : S_BODY;
            end
            C_QUIT: state <= S_COMMAND;
            default: ;
          endcase
        end
        S_BODY:
        if (go8) begin
          m.vbeats <= m.vbeats + 9'd1;
          body_left <= body_left - 12'd8;
          body_take <= body_left > 12'd16 ? 4'd8 : body_left[3:0] - 4'd8;
          body_ends <= body_left <= 12'd16;
          if (body_ends) state <= S_BODY_END;
        end
        S_BODY_END: if (go8) state <= S_COMMAND;
        // A storage command whose body is not all here.
        S_CLOSE: if (room) state <= S_COMMAND;
        default: ;
      endcase
    end
  end
endmodule
