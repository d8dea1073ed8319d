// SPDX-License-Identifier: Apache-2.0
//
// Reads the headers of IPv4 or IPv6, UDP and memcached, verifies lengths and checksums, and hands a
// datagram's payload on when all of it is known to be right: nothing of a damaged datagram takes
// effect. The order of the checks is that of src/net/packet.h.
//
// All headers are whole words of four bytes, so a beat's worth of what comes next begins at byte 0 or
// 4 of a beat.
module udp_rx
  import wc_pkg::*;
#(
    parameter bit REPLIES = 1'b0   // datagrams that come from the port, not those that go there
) (
    input  logic        clk,
    input  logic        rst,
    input  logic [15:0] udp_port,
    input  logic        eth_valid,
    output logic        eth_ready,
    input  eth_ctx_t    eth,
    input  logic        eth_v6,
    input  logic        in_valid,
    output logic        in_ready,
    input  logic [63:0] in_data,
    input  logic [3:0]  in_bytes,
    input  logic        in_last,
    input  logic        in_error,
    output logic        ctx_valid,
    input  logic        ctx_ready,
    output ctx_t        ctx,
    output logic        info_valid,
    input  logic        info_ready,
    output info_t       info,
    output logic        out_valid,
    input  logic        out_ready,
    output logic [63:0] out_data,
    output logic [3:0]  out_bytes,
    output logic        out_last,
    // At the end of each frame one of them.
    output logic        passed,
    output logic        drop_not_for_us,
    output logic        drop_truncated,
    output logic        drop_checksum,
    output logic        drop_fragment,
    output logic        drop_unsupported,
    output logic        drop_malformed,
    output logic        drop_may_change   // with a drop: whoever reads more of it may find requests
);
  localparam logic [15:0] PAYLOAD_MAX = 16'd4000;

  typedef enum logic [3:0] {
    S_IP, S_IP4, S_IP4_DST, S_IP4_OPTIONS, S_IP6_SRC, S_IP6_SRC2, S_IP6_DST, S_IP6_DST2, S_UDP, S_MEMCACHED, S_PAYLOAD,
    S_DRAIN, S_SUM, S_VERDICT
  } state_t;
  state_t state;

  // --- The next 8 bytes, fewer at the frame's end.
  typedef struct packed {
    logic [7:0] lf;     // which bytes are one
    logic error;
    logic last;
    logic short_end;    // the last one, of up to 4 bytes
    logic [3:0] bytes;
    logic [63:0] data;
  } beat_t;
  beat_t coming, first, second;
  logic first_valid, second_valid, take, take_both;
  always_comb begin
    coming.error = in_error;
    coming.last = in_last;
    coming.short_end = in_last && in_bytes <= 4'd4;
    coming.bytes = in_bytes;
    coming.data = in_data & byte_mask(in_bytes);
    for (int i = 0; i < 8; i++) coming.lf[i] = in_data[8*i+:8] == 8'h0a;
  end
  two_beats #(.W($bits(beat_t))) beats (
      .clk, .rst, .in_valid, .in_ready, .in_data(coming), .first_valid, .first, .second_valid, .second, .take, .take_both
  );
  logic at_4;           // they begin at byte 4 of the first beat
  logic there;
  logic closes;         // they end in the second beat, and the frame with them
  logic view_last;      // the frame ends with them
  logic [3:0] bytes;
  logic [63:0] view;    // bytes after the frame's end are zero
  logic [7:0] view_lf;
  assign there = first_valid && (!at_4 || first.last || second_valid);
  assign closes = at_4 && !first.last && second.short_end;
  assign view_last = first.last || closes;
  always_comb begin
    view = first.data;
    view_lf = first.lf;
    bytes = first.bytes;
    if (at_4) begin
      view = {first.last ? 32'd0 : second.data[31:0], first.data[63:32]};
      view_lf = {second.lf[3:0], first.lf[7:4]};
      bytes = first.last ? first.bytes - 4'd4 : closes ? second.bytes + 4'd4 : 4'd8;
    end
  end

  // --- What is taken of them: all, or the first word.
  logic fifo_ready, decided;
  logic may_take;       // what of the state is known a cycle before: it reads bytes, and does not wait for the frame before
  logic takes, takes_word, push, ends;
  assign takes_word = state == S_IP4_DST || state == S_IP4_OPTIONS;
  assign takes = there && may_take && (state != S_IP || eth_valid) && (state != S_PAYLOAD || fifo_ready);
  assign push = state == S_PAYLOAD && there && fifo_ready;
  // The frame ends with what is taken. A word of the two in a beat is its last where the beat has no other one.
  assign ends = takes && (takes_word ? (at_4 ? first.last : first.short_end) : view_last);
  assign take = takes && (!takes_word || at_4 || first.short_end);
  assign take_both = takes && !takes_word && closes;

  // --- What has been found out about the frame.
  logic [15:0] ip_left;       // bytes that IP still carries, the rest of its header included
  logic [15:0] taken, ip_after;
  logic [11:0] pay_left;      // bytes of the datagram's payload
  logic [3:0]  part;          // of the next 8 bytes, those that count
  logic        pay_ends;      // they are the payload's last ones
  logic [15:0] udp_size;
  logic [3:0]  option_words;
  logic [11:0] pos, lf_end;
  logic bad_version, bad_length, fragment, extension, not_ours, short_udp, port_differs;
  logic bad_udp_size, no_header, multi_part, too_long, damaged;
  logic is_udp, is_tcp, to_port, tcp_data;
  logic zero_half;            // so are the first 8 bytes of an IPv6 address
  logic [6:0] l4_left;        // what IP carries, in 64 bytes; bit 6: more
  ctx_t held;
  always_comb begin
    taken = {12'd0, bytes};
    if (state == S_IP4) taken = 16'd16;  // the version's beat too
    else if (takes_word && bytes > 4'd4) taken = 16'd4;
    ip_after = ip_left > taken ? ip_left - taken : 16'd0;
  end

  // --- Fields of the window.
  logic [15:0] total_size;
  logic [3:0] ihl;
  assign ihl = view[3:0];
  assign total_size = swap16(view[31:16]);
  logic [15:0] udp_length, served_port;
  assign udp_length = swap16(view[47:32]);
  assign served_port = REPLIES ? swap16(view[15:0]) : swap16(view[31:16]);

  function automatic logic host4(logic [7:0] top);
    host4 = top != 8'd0 && top < 8'd224;
  endfunction

  // --- The last LF of this beat.
  logic [3:0] lf_in_beat;  // bytes up to and with it
  logic [3:0] lf_found;    // of the beat before
  logic [11:0] lf_pos;
  always_comb begin
    lf_in_beat = 4'd0;
    for (int i = 0; i < 8; i++)
      if (4'(i) < part && view_lf[i]) lf_in_beat = 4'(i + 1);
  end

  logic [63:0] beat;
  assign beat = view & byte_mask(part);

  // --- Sums. The words of what is taken are added up in a cycle, and to the sums in the next one; a sum's carries
  // come back at its end then.
  logic [17:0] low, high;       // of the two words that were taken in the cycle before
  logic low_ip, high_ip;        // they are of IPv4's header
  logic low_udp, high_udp;      // they are of the addresses or the datagram
  logic udp_taken;              // the datagram begins with them
  logic [19:0] header_sum, sum;
  function automatic logic [17:0] word_sum(logic [31:0] d);
    word_sum = {2'd0, d[7:0], d[15:8]} + {2'd0, d[23:16], d[31:24]};
  endfunction
  function automatic logic [19:0] added(logic [19:0] to, logic [4:0] more, logic [17:0] a, logic [17:0] b);
    added = {4'd0, to[15:0]} + {15'd0, {1'b0, to[19:16]} + more} + {2'd0, a} + {2'd0, b};
  endfunction
  // Without a carry to come back this is so for all ones only.
  function automatic logic is_right(logic [19:0] total);
    is_right = total[15:4] == '1 && total[3:0] == ~total[19:16];
  endfunction

  // --- The verdict.
  typedef struct packed {
    logic good;
    logic not_for_us;
    logic truncated;
    logic bad_checksum;
    logic fragment;
    logic unsupported;
    logic malformed;
  } verdict_t;
  verdict_t finding, verdict;
  logic may_change, settled, finds;
  logic bad_sum, bad_header_sum, short_frame;
  assign bad_sum = held.has_checksum ? !is_right(sum) : held.v6;
  assign bad_header_sum = !held.v6 && !is_right(header_sum);
  assign short_frame = ip_left != 16'd0;
  always_comb begin
    finding = '0;
    if (damaged) finding.bad_checksum = 1'b1;
    else if (bad_version) finding.unsupported = 1'b1;
    else if (bad_length || short_frame) finding.truncated = 1'b1;
    else if (bad_header_sum) finding.bad_checksum = 1'b1;
    else if (fragment) finding.fragment = 1'b1;
    else if (extension) finding.unsupported = 1'b1;
    else if (not_ours) finding.not_for_us = 1'b1;
    else if (short_udp) finding.truncated = 1'b1;
    else if (port_differs) finding.not_for_us = 1'b1;
    else if (bad_udp_size) finding.truncated = 1'b1;
    else if (too_long) finding.unsupported = 1'b1;
    else if (bad_sum) finding.bad_checksum = 1'b1;
    else if (no_header || multi_part) finding.malformed = 1'b1;
    else finding.good = 1'b1;
  end
  assign finds = state == S_VERDICT && (!decided || settled);
  assign eth_ready = finds;
  assign passed = decided && verdict.good && ctx_ready && info_ready;
  assign settled = decided && (!verdict.good || (ctx_ready && info_ready));
  assign drop_not_for_us = decided && verdict.not_for_us;
  assign drop_truncated = decided && verdict.truncated;
  assign drop_checksum = decided && verdict.bad_checksum;
  assign drop_fragment = decided && verdict.fragment;
  assign drop_unsupported = decided && verdict.unsupported;
  assign drop_malformed = decided && verdict.malformed;
  assign drop_may_change = decided && may_change;
  assign ctx_valid = decided && verdict.good && info_ready;
  assign info_valid = decided && verdict.good && ctx_ready;
  assign ctx = held;
  assign info.size = pos;
  assign info.lf_end = lf_end;

  packet_fifo #(.W(69), .LOG(9), .REG(1'b1)) payload (
      .clk, .rst, .in_valid(push), .in_ready(fifo_ready), .in_data({pay_ends, part, beat}), .commit(passed),
      .abort(decided && !verdict.good), .out_valid, .out_ready, .out_data({out_last, out_bytes, out_data})
  );

  always_ff @(posedge clk) begin
    if (rst) begin
      decided <= 1'b0;
    end else if (finds) begin
      decided <= 1'b1;
    end else if (settled) begin
      decided <= 1'b0;
    end
    if (finds) begin
      verdict <= finding;
      // A damaged frame is read by nobody. What is surely for another port or protocol changes nothing
      // here, and a TCP segment without data neither.
      may_change <= !finding.good && !damaged &&
                    !(finding.not_for_us && !(to_port && (is_udp || (is_tcp && tcp_data))));
    end
  end

  always_ff @(posedge clk) begin
    low <= word_sum(beat[31:0]);
    // The datagram's size counts twice: it is a part of the addresses' header, too.
    high <= word_sum(beat[63:32]) + (state == S_UDP ? {2'd0, udp_length} : 18'd0);
    low_ip <= takes && (state == S_IP || state == S_IP4 || state == S_IP4_DST || state == S_IP4_OPTIONS);
    high_ip <= takes && (state == S_IP || state == S_IP4);
    low_udp <= takes && state != S_IP && state != S_IP4 && state != S_IP4_OPTIONS && state != S_DRAIN;
    high_udp <= takes && state != S_IP && state != S_IP4_DST && state != S_IP4_OPTIONS && state != S_DRAIN;
    udp_taken <= takes && state == S_UDP;
    header_sum <= state == S_IP ? 20'd0 : added(header_sum, 5'd0, low_ip ? low : 18'd0, high_ip ? high : 18'd0);
    sum <= state == S_IP ? 20'd0 : added(sum, udp_taken ? 5'd17 : 5'd0, low_udp ? low : 18'd0, high_udp ? high : 18'd0);

    lf_found <= push ? lf_in_beat : 4'd0;
    lf_pos <= pos;
    if (lf_found != 4'd0) lf_end <= lf_pos + {8'd0, lf_found};

    if (ends) damaged <= first.last ? first.error : second.error;
    case (state)
      S_IP: begin
        // The start of a packet, of either version.
        bad_version <= view[7:4] != (eth_v6 ? 4'd6 : 4'd4);
        bad_length <= !eth_v6 && (ihl < 4'd5 || {10'd0, ihl, 2'd0} > total_size);
        fragment <= eth_v6 ? view[55:48] == 8'd44 : (swap16(view[63:48]) & 16'h3fff) != 16'd0;
        extension <= eth_v6 && (view[55:48] == 8'd0 || view[55:48] == 8'd43 || view[55:48] == 8'd60);
        not_ours <= eth_v6 && view[55:48] != 8'd17;
        is_udp <= eth_v6 && view[55:48] == 8'd17;
        is_tcp <= eth_v6 && view[55:48] == 8'd6;
        ip_left <= eth_v6 ? swap16(view[47:32]) : total_size;
        option_words <= ihl - 4'd5;
        short_udp <= 1'b0;
        port_differs <= 1'b0;
        bad_udp_size <= 1'b0;
        no_header <= 1'b0;
        multi_part <= 1'b0;
        too_long <= 1'b0;
        to_port <= 1'b0;
        tcp_data <= 1'b0;
        part <= 4'd8;
        if (ends) begin
          bad_length <= 1'b1;
          if (!eth_v6) bad_version <= 1'b0;
        end
      end
      S_IP4:
      if (takes) begin
        not_ours <= view[15:8] != 8'd17 || !host4(view[39:32]);
        is_udp <= view[15:8] == 8'd17;
        is_tcp <= view[15:8] == 8'd6;
        ip_left <= ip_after;
        if (ends) begin
          bad_length <= 1'b1;
          bad_version <= 1'b0;
        end
      end
      S_IP4_DST:
      if (takes) begin
        not_ours <= not_ours || !host4(view[7:0]);
        ip_left <= ip_after;
        if (ends && ip_left == 16'd4) short_udp <= 1'b1;
        if (bytes < 4'd4) begin
          bad_length <= 1'b1;
          bad_version <= 1'b0;
        end
      end
      S_IP4_OPTIONS:
      if (takes) begin
        ip_left <= ip_after;
        option_words <= option_words - 4'd1;
        if (ends) short_udp <= 1'b1;
      end
      // Of IPv6 the header's own bytes are not in its length.
      S_IP6_SRC, S_IP6_DST:
      if (takes) begin
        if (view[7:0] == 8'hff) not_ours <= 1'b1;
        zero_half <= view == 64'd0;
        if (ends) bad_length <= 1'b1;
      end
      S_IP6_SRC2, S_IP6_DST2:
      if (takes) begin
        if (zero_half && view == 64'd0) not_ours <= 1'b1;
        if (bytes != 4'd8 || (ends && state == S_IP6_SRC2)) bad_length <= 1'b1;
        if (ends) short_udp <= 1'b1;
      end
      S_UDP:
      if (takes) begin
        short_udp <= ip_left < 16'd8 || bytes != 4'd8;
        port_differs <= served_port != udp_port || view[15:0] == 16'd0;
        to_port <= swap16(view[31:16]) == udp_port;
        tcp_data <= ip_left != 16'd0;
        l4_left <= {ip_left[15:6] != 10'd0, ip_left[5:0]};
        bad_udp_size <= udp_length < 16'd8 || udp_length > ip_left;
        too_long <= udp_length > PAYLOAD_MAX;
        no_header <= udp_length <= 16'd16;
        multi_part <= 1'b1;
        udp_size <= udp_length;
        part <= udp_length[15:4] != 12'd0 ? 4'd8 : {1'b0, udp_length[2:0]};
        pos <= '0;
        lf_end <= '0;
        ip_left <= ip_after;
      end
      S_MEMCACHED:
      if (takes) begin
        tcp_data <= l4_left[6] || l4_left[5:0] > {view[39:36], 2'd0};
        multi_part <= swap16(view[47:32]) != 16'd1;
        pay_left <= {udp_size[11:4] - 8'd1, udp_size[3:0]};
        pay_ends <= udp_size[11:4] == 8'd1 && udp_size[3:0] <= 4'd8;
        part <= udp_size[11:4] == 8'd1 && udp_size[3:0] <= 4'd8 ? udp_size[3:0] : 4'd8;
        ip_left <= ip_after;
      end
      S_PAYLOAD:
      if (takes) begin
        pos <= pos + {8'd0, part};
        pay_left <= pay_left - {8'd0, part};
        part <= pay_left > 12'd16 ? 4'd8 : pay_left[3:0] - part;
        pay_ends <= pay_left <= 12'd16;
        if (bytes < part) bad_length <= 1'b1;
        ip_left <= ip_after;
      end
      S_DRAIN: if (takes) ip_left <= ip_after;
      S_SUM: part <= 4'd8;
      default: ;
    endcase
  end

  // --- What is kept of the frame. A state lasts until its bytes are there and are taken: so the last ones that it sees are
  // right, and whether they are taken, which is known late, does not matter. The frame before may wait until its context is taken.
  always_ff @(posedge clk) begin
    // Until UDP's header, it is the sum of the addresses.
    if (udp_taken) held.address_sum <= fold32({12'd0, sum});
    case (state)
      S_IP4, S_IP6_SRC:
      if (!decided) begin
        held.eth <= eth;
        held.v6 <= state == S_IP6_SRC;
        held.src_ip <= state == S_IP6_SRC ? {swap64(view), 64'd0} : {96'd0, swap32(view[63:32])};
      end
      S_IP6_SRC2: held.src_ip[63:0] <= swap64(view);
      S_IP4_DST: held.dst_ip <= {96'd0, swap32(view[31:0])};
      S_IP6_DST: held.dst_ip[127:64] <= swap64(view);
      S_IP6_DST2: held.dst_ip[63:0] <= swap64(view);
      S_UDP: begin
        held.src_port <= swap16(view[15:0]);
        held.dst_port <= swap16(view[31:16]);
        held.has_checksum <= view[63:48] != 16'd0;
      end
      S_MEMCACHED: held.request_id <= swap16(view[15:0]);
      default: ;
    endcase
  end

  always_ff @(posedge clk) begin
    if (rst) begin
      state <= S_IP;
      at_4 <= 1'b0;
      may_take <= 1'b1;
    end else begin
      // Behind its first beat a frame waits until the context of the frame before is taken.
      may_take <= !ends && state != S_SUM && (state != S_VERDICT || finds) &&
                  !(decided && !settled && (state == S_IP || state == S_IP4 || state == S_IP6_SRC));
      if (ends) at_4 <= 1'b0;
      else if (takes && takes_word) at_4 <= !at_4;
      case (state)
        S_IP: if (takes) state <= eth_v6 ? S_IP6_SRC : S_IP4;
        S_IP4: if (takes) state <= S_IP4_DST;
        S_IP4_DST:
        if (takes) state <= bad_version || bad_length ? S_DRAIN : option_words != 4'd0 ? S_IP4_OPTIONS : S_UDP;
        S_IP4_OPTIONS: if (takes && option_words == 4'd1) state <= S_UDP;
        S_IP6_SRC: if (takes) state <= S_IP6_SRC2;
        S_IP6_SRC2: if (takes) state <= S_IP6_DST;
        S_IP6_DST: if (takes) state <= S_IP6_DST2;
        S_IP6_DST2: if (takes) state <= S_UDP;
        S_UDP: if (takes) state <= S_MEMCACHED;
        S_MEMCACHED: if (takes) state <= no_header || bad_udp_size || too_long || port_differs ? S_DRAIN : S_PAYLOAD;
        S_PAYLOAD: if (takes && pay_ends) state <= S_DRAIN;
        S_SUM: state <= S_VERDICT;
        S_VERDICT: if (finds) state <= S_IP;
        default: ;
      endcase
      if (ends) state <= S_SUM;
    end
  end
endmodule
